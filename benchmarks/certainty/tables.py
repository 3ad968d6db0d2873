"""Tables in 80 columns."""

from judging import EDGES


def verdict(passed):
    """Say whether a rule is met."""
    return "met" if passed else "MISSED"


def print_bins(columns, said, true, low, high, judged=None):
    """Print one line for each bin that has columns."""
    print("   p in bin    columns   said   true  (95 % band)")
    for b in range(EDGES.size - 1):
        if columns[b]:
            rule = "" if judged is None or judged[b] is None else f"   {verdict(judged[b])}"
            print(
                f"{EDGES[b]:6.2f}–{EDGES[b + 1]:4.2f} {columns[b]:9d} {said[b]:7.3f} {true[b]:6.3f}"
                f"  ({low[b]:.3f}–{high[b]:.3f}){rule}"
            )
