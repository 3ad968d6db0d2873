"""What the results of all samplers have in common: the answer, how it came about, and files."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from l0anneal._util import archive
from l0anneal.problem.sparse_problem import SparseProblem

__all__ = ["Record", "Result", "SearchResult", "chain_fields", "fitted"]

LINES, WIDTH = 6, 100  # of a repr
Floats = NDArray[np.float64]


def _image(figure: Any) -> str:
    """Return a matplotlib figure as an element of a page."""
    if figure is None:
        return ""
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=80)
    data = base64.b64encode(png.getvalue()).decode("ascii")
    return f'<img alt="figure" style="max-width:100%" src="data:image/png;base64,{data}">'


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Record:
    """What every result records about its run: the seed, the time, and why the run ended.

    Attributes
    ----------
    seed : int
        Pass it as ``random_state`` to reproduce the result.
    seconds : float
        Wall-clock time in seconds, not counting the compilation of kernels.
    interrupted : bool
        True if the user stopped the run before its end.
    ended : str
        Why the run ended.
    """

    seed: int
    seconds: float
    interrupted: bool = False
    ended: str = ""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the result to one file, of arrays (``.npz``) or of text (``.json``).

        `load` is the exact inverse.
        """
        archive.save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a result that `save` wrote."""
        return archive.load(cls, path)

    def summary(self) -> str:
        """Return the answer in a few lines."""
        rows = [*self._lines(), ("seed", str(self.seed)), ("time", f"{self.seconds:.3g} s")]
        if self.ended:
            rows.append(("ended", self.ended))
        rows += self._warnings()
        return "\n".join(f"{name:<12} {text}" for name, text in rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        return {
            "seed": self.seed,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "ended": self.ended,
        }

    def _lines(self) -> list[tuple[str, str]]:
        """Return name and text of the summary's lines that are specific to this kind of result."""
        return []

    def _warnings(self) -> list[tuple[str, str]]:
        """Return the same for lines that warn the reader."""
        return []

    def table(self) -> list[dict[str, str]]:
        """Return the rows of a table of the answer: heading and text of each cell."""
        return []

    def __repr__(self) -> str:
        lines = [f"{name:<12} {text}" for name, text in [*self._lines(), *self._warnings()]]
        shown = [line if len(line) <= WIDTH else line[: WIDTH - 2] + " …" for line in lines[:LINES]]
        if len(lines) > LINES:
            shown.append("… print(result.summary()) shows more")
        return "\n".join([f"<{type(self).__name__}, {self.seconds:.3g} s", *shown]) + ">"

    def figure(self) -> Any:
        """Return a picture of the result for notebooks, or None if there is nothing to draw."""
        return None

    def _repr_html_(self) -> str:
        rows = self.table()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in (rows[0] if rows else ()))
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row.values()) + "</tr>"
            for row in rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        text = html.escape(self.summary())
        return (
            f"<div><p><b>{type(self).__name__}</b></p>{table if rows else ''}{_image(self.figure())}"
            f"<details><summary>more</summary><pre>{text}</pre></details></div>"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result(Record):
    """A support and its coefficients.

    Attributes
    ----------
    support : ndarray of int
        The chosen columns, sorted.
    coef : ndarray of shape (N,)
        Least-squares coefficients on the support, zero elsewhere. They come from a QR factorisation of
        the columns (or a refined Cholesky factorisation, if only the Gram matrix was given), not from
        the numbers that the run updated.
    energy, distortion : float
        ½‖y − A coef‖², and that divided by M.
    signal_energy : float
        ‖y‖².
    n_samples, n_columns : int
        M and N.
    intercept : float
        The intercept that belongs to ``coef``; 0 if the problem has none.
    feature_names : tuple of str, or None
        Names of the columns, if the problem has names.
    """

    support: NDArray[np.int64]
    coef: Floats
    energy: float
    signal_energy: float
    n_samples: int
    intercept: float = 0.0
    feature_names: tuple[str, ...] | None = None

    @property
    def n_columns(self) -> int:
        """N, the number of columns of A."""
        return self.coef.size

    @property
    def distortion(self) -> float:
        """ε, the energy divided by M."""
        return self.energy / self.n_samples

    def name(self, j: int) -> str:
        """Return the name of a column, or its number if ``j`` has none."""
        return str(j) if self.feature_names is None else self.feature_names[j]

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        named = (
            {} if self.feature_names is None else {"names": [self.name(j) for j in self.support]}
        )
        return {
            "support": self.support.tolist(),
            **named,
            "coef": self.coef[self.support].tolist(),
            "intercept": self.intercept,
            "energy": self.energy,
            "distortion": self.distortion,
            "n_samples": self.n_samples,
            "n_columns": self.n_columns,
            **super().to_dict(),
        }

    def plot(self) -> Any:
        """Draw the result; returns a matplotlib figure."""
        from l0anneal.samplers.plotting import plot_coefficients

        return plot_coefficients(self)

    def figure(self) -> Any:
        """Return a small picture of the coefficients."""
        from l0anneal.samplers.plotting import plot_bars

        largest = self.support[np.argsort(-np.abs(self.coef[self.support]), kind="stable")][:10]
        if largest.size == 0:
            return None
        names = [self.name(j) for j in largest]
        return plot_bars(names, self.coef[largest], "coefficient")

    def _lines(self) -> list[tuple[str, str]]:
        shown = ", ".join(self.name(j) for j in self.support[:12])
        if self.support.size > 12:
            shown += f", … ({self.support.size} in all)"
        return [
            ("support", shown or "empty"),
            ("distortion", f"{self.distortion:.6g}   (energy ½‖y − Ax‖² = {self.energy:.6g})"),
        ]

    def table(self) -> list[dict[str, str]]:
        largest = self.support[np.argsort(-np.abs(self.coef[self.support]), kind="stable")]
        rows = [
            {"column": self.name(j), "coefficient": f"{self.coef[j]:.6g}"} for j in largest[:10]
        ]
        if largest.size > 10:
            rows.append({"column": "…", "coefficient": f"{largest.size - 10} smaller ones"})
        return rows


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SearchResult(Result):
    """The best support of several independent chains.

    Attributes
    ----------
    chain_energies, chain_supports, chain_coefs : ndarrays
        Energy, support and coefficients of each chain.
    n_agree : int
        How many chains ended with the best support.
    """

    chain_energies: Floats
    chain_supports: NDArray[np.int64]
    chain_coefs: Floats

    @property
    def n_agree(self) -> int:
        """How many chains ended in the best support."""
        return int(np.sum(np.all(self.chain_supports == self.support, axis=1)))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        counts = {"n_chains": len(self.chain_energies), "n_agree": self.n_agree}
        return super().to_dict() | counts

    def _lines(self) -> list[tuple[str, str]]:
        chains = f"{self.n_agree} of {len(self.chain_energies)} ended in this support"
        return [*super()._lines(), ("chains", chains)]


def fitted(problem: SparseProblem, support: NDArray[np.int64]) -> dict[str, Any]:
    """Return least squares on a support as fields of a `Result`."""
    x, energy = problem.least_squares(support)
    coef = np.zeros(problem.n_columns)
    coef[support] = x
    return {
        "support": support,
        "coef": coef,
        "energy": energy,
        "signal_energy": problem.signal_energy,
        "n_samples": problem.n_samples,
        "intercept": problem.intercept_of(coef),
        "feature_names": problem.feature_names,
    }


def chain_fields(problem: SparseProblem, supports: Sequence[NDArray[np.int64]]) -> dict[str, Any]:
    """Return least squares on the supports of the chains as fields of a `SearchResult`."""
    fits = [fitted(problem, support) for support in supports]
    energies = np.array([fit["energy"] for fit in fits])
    return fits[int(np.argmin(energies))] | {
        "chain_energies": energies,
        "chain_supports": np.stack(supports),
        "chain_coefs": np.stack([fit["coef"] for fit in fits]),
    }
