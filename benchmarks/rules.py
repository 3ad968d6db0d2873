"""How often each rule of the verdicts agrees at its margin, and its power.

    python benchmarks/rules.py [--trials 2000]

The table has, for 100 samples, the rate of "agrees" where the truth lies at the margin (at most 5 %
for a rule alone on its page), the rates of "agrees" for a true claim and of "differs" for a false
one, and for 10 samples the rate of "agrees" for a true claim. `src/l0anneal/reproduction/rule_rates.py`
has the data that are drawn.
"""

import argparse

from l0anneal.reproduction.rule_rates import CASES, rate
from origin import print_origin


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000, help="trials of each rate")
    n_trials = parser.parse_args().trials
    print_origin()
    print(
        "| rule | data: at the margin, for the claim, against it | agrees at the margin "
        "| agrees, true | differs, false | agrees, true, 10 samples |"
    )
    print("|---|---|---|---|---|---|")
    for name, case in CASES.items():
        rates = (
            rate(name, "margin", 100, n_trials),
            rate(name, "claim", 100, n_trials),
            rate(name, "violation", 100, n_trials, "differs"),
            rate(name, "claim", 10, n_trials),
        )
        cells = " | ".join(f"{100 * value:.1f} %" for value in rates)
        print(f"| {name} | {case.says} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
