"""The answer for people, in a terminal of 80 columns."""

from __future__ import annotations

import math
from collections.abc import Collection
from textwrap import wrap

import numpy as np

from l0anneal.cli.answer import CERTAIN, LIKELY, Answer, Row
from l0anneal.samplers.evidence.result import EvidenceResult
from l0anneal.samplers.result import SearchResult

__all__ = ["answer_lines", "labelled", "prediction_lines"]

WIDTH = 80
MOST_ROWS, MOST_OTHERS, MOST_PREDICTIONS = 40, 10, 10
_INDENT = 12
TOOLS = ("plot", "diagnose", "predict", "out")
_WIDTHS = {"coefficient": 14, "std. dev.": 12, "probability": 13, "set": 5}


def answer_lines(
    answer: Answer, used: Collection[str] = (), tools: Collection[str] = TOOLS
) -> list[str]:
    """Return the lines to print.

    Parameters
    ----------
    answer : Answer
        The answer.
    used : collection of str
        Options that were used and are not recommended again.
    tools : collection of str
        Options that the command has and that can be recommended.
    """
    result = answer.result
    by = "with an intercept" if answer.has_intercept else "no intercept"
    k, n = result.support.size, result.n_columns
    rows_in_all = 0 if answer.problem.A is None else answer.problem.A.shape[0]
    title = f"{_short(answer.target, 30)}: {k} of {n} columns chosen, {rows_in_all} rows, {by}"
    return [title, "", *_table(answer), "", *_facts(answer), *_advice(answer, used, tools)]


def labelled(label: str, text: str) -> list[str]:
    """Return a text with a label before it, wrapped to the width of the terminal."""
    lines = wrap(text, WIDTH - _INDENT, break_long_words=True) or [""]
    return [f"{label:<{_INDENT}}{lines[0]}", *(" " * _INDENT + line for line in lines[1:])]


def prediction_lines(
    answer: Answer, source: str, mean: np.ndarray, std: np.ndarray | None
) -> list[str]:
    """Return the first predictions as a small table."""
    target = _short(answer.target, 24)
    lines = ["", f"predictions of {target} for {_short(source, 30)}, {mean.size} rows"]
    lines.append(
        f"{'row':>8}{target:>{_wide(target)}}" + ("" if std is None else f"{'std. dev.':>14}")
    )
    for i in range(min(mean.size, MOST_PREDICTIONS)):
        spread = "" if std is None else f"{std[i]:>14.4g}"
        shown = _digits(mean[i], answer.noise_std, 6, zeros=True)
        lines.append(f"{i:>8}{shown:>{_wide(target)}}{spread}")
    if mean.size > MOST_PREDICTIONS:
        more = f"{mean.size - MOST_PREDICTIONS} more: --predictions FILE.csv writes all of them"
        lines.append(f"{'…':>8}  {more}")
    return lines


def _wide(target: str) -> int:
    return max(16, len(target) + 2)


# ------------------------------------------------------------ the table


def _table(answer: Answer) -> list[str]:
    rows = answer.rows()
    chosen = [row for row in rows if row.chosen]
    others = [row for row in rows if not row.chosen]
    shown = chosen[:MOST_ROWS] + others[:MOST_OTHERS]
    heads = ["coefficient"]
    heads += ["std. dev."] if any(row.std is not None for row in shown) else []
    heads += ["probability"] if any(row.probability is not None for row in shown) else []
    heads += ["set"] if any(row.set for row in shown) else []
    names = [row.name for row in shown] + (["(intercept)"] if answer.has_intercept else [])
    room = WIDTH - sum(_WIDTHS[head] for head in heads)
    width = min(room, max(map(len, names), default=4) + 1, 40)
    lines = [f"{'name':<{width}}" + "".join(f"{head:>{_WIDTHS[head]}}" for head in heads)]
    for row in chosen[:MOST_ROWS]:
        lines.append(_line(row, heads, width))
    if len(chosen) > MOST_ROWS:
        lines.append(f"… and {len(chosen) - MOST_ROWS} more: --json lists all of them")
    if answer.has_intercept:
        intercept = _digits(answer.result.intercept, answer.noise_std)
        lines.append(f"{'(intercept)':<{width}}{intercept:>{_WIDTHS['coefficient']}}")
    if others:
        lines.append("not chosen, but possible:")
        lines += [_line(row, heads, width) for row in others[:MOST_OTHERS]]
        if len(others) > MOST_OTHERS:
            lines.append(f"… and {len(others) - MOST_OTHERS} more: --json lists all of them")
    return lines


def _line(row: Row, heads: list[str], width: int) -> str:
    cells = {
        "coefficient": _digits(row.coef, row.std) if row.chosen else "–",
        "std. dev.": "" if row.std is None else f"{row.std:.2g}",
        "probability": "" if row.probability is None else f"{row.probability:.2f}",
        "set": row.set or "",
    }
    line = "".join(f"{cells[head]:>{_WIDTHS[head]}}" for head in heads)
    return f"{_short(row.name, width - 1):<{width}}{line}".rstrip()


def _digits(value: float, error: float | None = None, digits: int = 5, zeros: bool = False) -> str:
    """Return a number with enough digits to show two of those that its error leaves uncertain."""
    if value and error and math.isfinite(error):
        digits = max(digits, min(12, math.floor(math.log10(abs(value) / error)) + 2))
    return f"{value:#.{digits}g}".rstrip(".") if zeros else f"{value:.{digits}g}"


def _short(name: str, width: int) -> str:
    """Return a name with its middle cut out if it is too long: names often differ at the end."""
    name = " ".join(name.split())
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return name[: width - 1 - tail] + "…" + name[-tail:]


# ------------------------------------------------------------ how good, how sure, what next


def _facts(answer: Answer) -> list[str]:
    result = answer.result
    lines = []
    if math.isfinite(answer.r2):
        of = "of the variance" if answer.has_intercept else "of the sum of squares (no intercept)"
        r2 = 0.0 if abs(answer.r2) < 1e-9 else answer.r2
        lines += labelled("R²", f"{r2:.4g} {of}")
    if math.isfinite(answer.noise_std):
        lines += labelled("noise", f"standard deviation {answer.noise_std:.4g}")
    lines += labelled("distortion", f"{result.distortion:.6g}")
    lines += labelled("how sure", _how_sure(answer))
    for letter, found in answer.sets():
        names = [_short(answer.names[j], 30) for j in found.columns[:6]]
        more = f" and {found.columns.size - 6} more" if found.columns.size > 6 else ""
        lines += labelled(
            f"set {letter}",
            f"at least one of {', '.join(names)}{more} belongs, with probability "
            f"{found.probability:.2f}; they stand in for each other",
        )
    return lines + labelled("run", f"seed {result.seed}, {result.seconds:.2g} s, {result.ended}")


def _how_sure(answer: Answer) -> str:
    result = answer.result
    if result.interrupted:
        return "interrupted: these are the best columns so far"
    if isinstance(result, EvidenceResult):
        return _certainty(result)
    if isinstance(result, SearchResult):
        n = len(result.chain_energies)
        if n > 1:
            return f"{result.n_agree} of {n} searches ended with these columns"
        return "one search found these columns; whether another one would is not known"
    return ""


def _certainty(result: EvidenceResult) -> str:
    p = result.inclusion_probability
    certain, undecided = int(np.sum(p >= CERTAIN)), int(np.sum((p > LIKELY) & (p < CERTAIN)))
    counts = (
        f"{_columns(certain)} certain (probability .95 or more), {_columns(undecided)} undecided "
        "(.05 to .95)"
    )
    if result.state == "found":
        return "the columns fit exactly, and too well for chance"
    if result.state == "begun":
        return "not known: there was no time for probabilities; the columns were chosen greedily"
    if result.state in ("trapped", "disagreed") and result.has_few_samples:
        return "not at all: there are too few rows"
    if result.state == "trapped":
        return "trapped: no clear noise level was found; do not trust columns or probabilities"
    if result.state == "disagreed":
        return f"the chains disagree, so that the probabilities are uncertain: {counts}"
    if np.any(p[result.support] < 0.5):
        counts += "; a chosen column below .5 is the likeliest of a correlated group"
    return f"the chains agree: {counts}"


def _columns(n: int) -> str:
    return "no column is" if n == 0 else "1 column is" if n == 1 else f"{n} columns are"


def _advice(answer: Answer, used: Collection[str], tools: Collection[str]) -> list[str]:
    """Say what to do next, with options of the command that were not used."""
    offered = [name for name in tools if name not in used]
    result = answer.result
    next_ = []
    if result.interrupted:
        next_.append("run again to the end, or with --time-limit SECONDS")
    elif isinstance(result, EvidenceResult):
        p = result.inclusion_probability
        if result.state == "begun":
            next_.append("give more time (--time-limit 60)")
        elif result.has_few_samples and result.state != "found":
            n = result.n_samples + answer.has_intercept
            next_.append(f"add rows: {n} are too few to tell columns from noise")
        elif result.state == "trapped":
            next_.append(
                "give more time (--time-limit 60), more rows, or fewer columns (--columns)"
            )
        elif result.state == "disagreed":
            next_.append("give more time (--time-limit 60), or compare with another --random-state")
        elif result.state == "found":
            next_.append(
                f"check that no column was computed from {_short(answer.target, 30)} (--drop it if so)"
            )
        elif result.support.size == 0:
            next_.append("no column explains the target; try other columns, or more rows")
        elif undecided := set(np.flatnonzero((p > LIKELY) & (p < CERTAIN)).tolist()):
            shown = "; --plot FILE.png shows the probabilities" if "plot" in offered else ""
            if undecided <= {int(j) for _, found in answer.sets() for j in found.columns}:
                next_.append(f"columns of one set are alike: choose by what you know{shown}")
            else:
                next_.append(f"more rows would decide about the undecided columns{shown}")
    elif isinstance(result, SearchResult):
        if "diagnose" in offered:
            next_.append("--diagnose tells whether to trust it")
        next_.append(
            "without -k, you also get probabilities"
            if "diagnose" in tools
            else "l0anneal solve, without -k, also gives probabilities"
        )
    texts = {"predict": "--predict NEW.csv predicts", "out": "--out FILE.json keeps the result"}
    left = [text for name, text in texts.items() if name in offered]
    if left and not result.interrupted:
        next_.append(", ".join(left))
    return [line for text in next_ for line in labelled("next", text)]
