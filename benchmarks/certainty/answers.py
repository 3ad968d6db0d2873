"""What a method says about one data set, and the folder in which answers are kept.

An answer is one file, ``method/regime/number.npz``, written whole and renamed into place, so that a
stopped run continues where it ended.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass
class Answer:
    """Inclusion probabilities, credible sets, and seconds of processor time on one thread.

    ``density`` is the method's estimate of the part of the columns that matter, which stands in for
    probabilities that the method withdraws (NaN). ``refused`` says that the method gave no credible
    sets because it has too few draws for them. ``data`` is the `fingerprint` of the data set.
    """

    probability: np.ndarray
    seconds: float
    sets: list[np.ndarray] = field(default_factory=list)
    state: str = ""
    density: float = np.nan
    refused: bool = False
    data: float = np.nan

    @property
    def withdrawn(self):
        """Whether the method gives no probability for some column."""
        return bool(np.any(np.isnan(self.probability)))

    @property
    def scored(self):
        """The probabilities, with the density in place of those that were withdrawn."""
        scored = np.where(np.isnan(self.probability), self.density, self.probability)
        if np.any(np.isnan(scored)):
            raise ValueError("an answer without probabilities needs a density to be scored by")
        return scored

    def save(self, path):
        """Write the answer."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial.npz")
        np.savez_compressed(
            partial,
            probability=self.probability,
            seconds=self.seconds,
            members=np.concatenate([np.zeros(0, dtype=np.int64), *self.sets]),
            sizes=np.array([len(members) for members in self.sets], dtype=np.int64),
            state=self.state,
            density=self.density,
            refused=self.refused,
            data=self.data,
        )
        partial.rename(path)

    @classmethod
    def load(cls, path):
        """Read an answer."""
        with np.load(path) as f:
            ends = np.cumsum(f["sizes"])[:-1]
            return cls(
                f["probability"],
                float(f["seconds"]),
                np.split(f["members"], ends) if f["sizes"].size else [],
                str(f["state"]),
                float(f["density"]),
                bool(f["refused"]),
                float(f["data"]),
            )


def path_of(store, method, regime, i):
    """Return where the answer of a method to data set i is."""
    return Path(store) / method / regime / f"{i:04d}.npz"


def collect(store, method, regimes, n_data_sets, make, fit, minutes=None):
    """Store the answers that are missing: ``fit(regime, data, i)`` to ``data = make(regime, i)``.

    Data set i of all regimes precedes data set i + 1, so that a run that ``minutes`` ends has as many
    of each. No data set is begun after that time. Returns whether the store is complete.
    """
    began = time.monotonic()
    for i in range(n_data_sets):
        for regime in regimes:
            path = path_of(store, method, regime, i)
            if path.exists():
                continue
            if minutes is not None and time.monotonic() - began > 60 * minutes:
                print(f"{method}: out of time at data set {i}; run again to continue")
                return False
            data = make(regime, i)
            answer = fit(regime, data, i)
            answer.data = fingerprint(data)
            answer.save(path)
    return True


def paired(store, methods, regime, n_data_sets, make):
    """Return (data, answers by method) of the data sets that every one of the methods has answered."""
    pairs = []
    for i in range(n_data_sets):
        paths = {method: path_of(store, method, regime, i) for method in methods}
        if not all(path.exists() for path in paths.values()):
            continue
        data = make(regime, i)
        answers = {method: Answer.load(path) for method, path in paths.items()}
        for method, answer in answers.items():
            if not np.isclose(answer.data, fingerprint(data), rtol=1e-6):
                raise ValueError(
                    f"{paths[method]} answers other data than data set {i} of {regime}; the data "
                    "have changed since: delete the stored answers and run again"
                )
        pairs.append((data, answers))
    return pairs


def fingerprint(data):
    """Return a number by which a data set is recognised, up to rounding."""
    return float(np.abs(data.y).sum())


def timed(function, *arguments, **keywords):
    """Call a function; return its value and the seconds of processor time it took."""
    began = time.process_time()
    value = function(*arguments, **keywords)
    return value, time.process_time() - began
