"""The exam of what evidence annealing says about its answers; README.md has the order and the rules."""

import argparse
import importlib
import os
import sys
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from answers import collect
from regimes import N_DATA_SETS, REGIMES, simulate

EXAM = ("law", "robustness", "noise", "peers", "sets")


def main():
    """Run one part, or the whole exam."""
    parser = argparse.ArgumentParser(prog="python benchmarks/certainty", description=__doc__)
    parser.add_argument("part", choices=("simulate", "susie", "millipede", *EXAM, "exam"))
    parser.add_argument(
        "--store", type=Path, default=Path(__file__).parent / "results", help="folder of answers"
    )
    parser.add_argument(
        "--minutes", type=float, help="begin no data set after this time; run again to continue"
    )
    parser.add_argument(
        "--data-sets", type=int, help="fewer data sets in each regime, to try the scripts out"
    )
    parser.add_argument("--plot", type=Path, help="draw the reliability diagrams of the law")
    options = parser.parse_args()
    n = options.data_sets or N_DATA_SETS
    if options.part == "simulate":
        simulate(options.store, n)
    elif options.part in ("susie", "millipede"):
        from rivals import RIVALS

        def make(name, i):
            return REGIMES[name].data_set(i, options.store)

        rival = RIVALS[options.part]
        collect(options.store, options.part, REGIMES, n, make, rival, options.minutes)
    else:
        sys.path.append(str(Path(__file__).parents[1]))
        from origin import print_origin

        print_origin()
        for name in EXAM if options.part == "exam" else (options.part,):
            more = {"plot": options.plot} if name == "law" else {}
            part = importlib.import_module(name)
            part.main(options.store, options.data_sets, options.minutes, **more)


if __name__ == "__main__":
    main()
