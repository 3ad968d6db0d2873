"""Run random samples of a stored report again, and compare them bit for bit.

    python benchmarks/rerun.py docs/reproduction              # 20 samples
    python benchmarks/rerun.py DIR --samples 100 --seed 1

The samples are drawn from the report's data files. The exit code is 1 if any of them differs.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from l0anneal.reproduction import Store
from l0anneal.reproduction.datasets import read_run
from l0anneal.reproduction.figures import sweeps_of
from l0anneal.reproduction.restore import restore
from l0anneal.reproduction.solvers import run
from l0anneal.reproduction.sweeps import tasks_of
from origin import print_origin


def differences(report, n_samples, seed):
    """Yield each drawn task with the names of its arrays that came out otherwise."""
    with tempfile.TemporaryDirectory() as directory:
        store = Store(directory)
        restore(report / "data", store)
        info = read_run(report / "data")
        tasks = [
            task for task in tasks_of(sweeps_of(info["figures"], info["quick"])) if task in store
        ]
        if not tasks:
            raise SystemExit(f"{report / 'data'} has no finished samples")
        chosen = np.random.default_rng(seed).permutation(len(tasks))[:n_samples]
        for i in chosen:
            stored = store.read(tasks[i]).arrays
            fresh, _ = run(tasks[i])
            yield (
                tasks[i],
                sorted(
                    name
                    for name in {*stored, *fresh}
                    if name not in stored
                    or name not in fresh
                    or stored[name].dtype != np.asarray(fresh[name]).dtype
                    or stored[name].tobytes() != np.asarray(fresh[name]).tobytes()
                ),
            )


def main(arguments=None):
    """Print a line for each sample, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print_origin()
    counts = Counter()
    for task, differing in differences(options.report, options.samples, options.seed):
        counts[bool(differing)] += 1
        what = f"{task.solver['kind']}, N = {task.ensemble['n_columns']}, sample {task.sample}"
        print(
            f"{task.id[:12]}  {what}: {'differs: ' + ', '.join(differing) if differing else 'same'}"
        )
    print(f"{counts[False]} of {counts.total()} samples are the same to the last bit")
    return int(counts[True] > 0)


if __name__ == "__main__":
    sys.exit(main())
