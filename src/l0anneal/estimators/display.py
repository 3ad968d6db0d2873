"""A picture of a subset path: how well each size fits, which is chosen, and its coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from l0anneal._util.figures import COLORS, new_figure
from l0anneal.estimators.criteria import choose_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from l0anneal.estimators.path import SubsetPath

__all__ = ["SubsetPathDisplay"]

NAMED = 8  # largest number of coefficients that are named at the right margin
TITLES = {
    "evidence": "evidence, −2 log p(y, support)",
    "bic": "BIC",
    "ebic": "extended BIC",
    "cv": "mean squared error, cross-validated",
    "cv_min": "mean squared error, cross-validated",
}


class SubsetPathDisplay:
    """Three panels over the number of columns: distortion, criterion, coefficients.

    Use `from_path` to create a display, as with the displays of scikit-learn.

    Parameters
    ----------
    path : SubsetPath
        The path to draw.
    criterion : {"evidence", "bic", "ebic", "cv", "cv_min"}
        The criterion in the middle panel, which chooses the size.

    Attributes
    ----------
    axes_ : tuple of three matplotlib Axes
        The axes of the three panels.
    figure_ : matplotlib Figure
        The figure that contains the axes.
    chosen_ : int
        The chosen number of columns.

    See Also
    --------
    subset_path : Compute a path.
    choose_size : Choose the number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import SubsetPathDisplay, subset_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 20))
    >>> path = subset_path(X, 3 * X[:, 4] + rng.standard_normal(60), 5, random_state=0)
    >>> SubsetPathDisplay.from_path(path, "ebic").chosen_
    1
    """

    def __init__(self, path: SubsetPath, criterion: str = "evidence") -> None:
        self.path, self.criterion = path, criterion
        self.chosen_ = choose_size(path, criterion)

    @classmethod
    def from_path(
        cls,
        path: SubsetPath,
        criterion: str | None = None,
        *,
        axes: Sequence[Axes] | None = None,
    ) -> SubsetPathDisplay:
        """Draw a path.

        Parameters
        ----------
        path : SubsetPath
            The path to draw, from `subset_path`.
        criterion : {"evidence", "bic", "ebic", "cv", "cv_min"}, optional
            The criterion that chooses the size; by default "cv" if the path was cross-validated,
            and otherwise "evidence".
        axes : three matplotlib Axes, optional
            Where to draw; by default in a new figure.
        """
        if criterion is None:
            criterion = "cv" if "cv" in path.criteria else "evidence"
        return cls(path, criterion).plot(axes=axes)

    def plot(self, *, axes: Sequence[Axes] | None = None) -> SubsetPathDisplay:
        """Draw on the given axes, or in a new figure."""
        if axes is None:
            axes = new_figure(13.0, 3.8).subplots(1, 3)
        axes = list(np.ravel(np.asarray(axes, dtype=object)))
        if len(axes) != 3:
            raise ValueError(f"three axes are needed: one per panel; got {len(axes)}")
        self.axes_: tuple[Axes, ...] = tuple(axes)
        self.figure_: Figure = axes[0].get_figure()  # type: ignore[assignment]
        self._fit(axes[0])
        self._criterion(axes[1])
        self._coefficients(axes[2])
        for ax in axes:
            ax.axvline(self.chosen_, color=COLORS["red"], ls="--", lw=1.2, zorder=0)
            ax.set_xlabel("number of columns k")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.spines[["top", "right"]].set_visible(False)
        axes[1].legend(frameon=False, fontsize=8)
        return self

    def _fit(self, ax: Any) -> None:
        path = self.path
        squared = 2.0 * path.distortions  # as the leave-one-out error, per sample
        ax.plot(path.sizes, squared, "o-", ms=3, color=COLORS["blue"], label="fit")
        finite = np.isfinite(path.leave_one_out)
        ax.plot(
            path.sizes[finite],
            path.leave_one_out[finite],
            ".:",
            ms=3,
            color=COLORS["orange"],
            label="leave one out, support fixed\n(too low: blind to the selection)",
        )
        # an exact fit would stretch a logarithmic axis until nothing else can be seen
        if 30 * squared.min() < squared.max() < 1e12 * squared.min():
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0.0)
        ax.set_ylabel("mean squared residual (2 × distortion)")
        ax.set_title("How well k columns fit", fontsize=10)
        ax.legend(frameon=False, fontsize=8)

    def _criterion(self, ax: Any) -> None:
        path, name = self.path, "cv" if self.criterion == "cv_min" else self.criterion
        values = path.criteria[name]
        ax.plot(path.sizes, values, "o-", ms=3, color=COLORS["green"])
        if name == "cv" and path.cv_error is not None:
            ax.fill_between(
                path.sizes,
                values - path.cv_error,
                values + path.cv_error,
                color=COLORS["green"],
                alpha=0.2,
                lw=0,
                label="± one standard error",
            )
        if self.criterion == "cv" and path.cv_error is not None:
            best = int(np.argmin(values))
            ax.axhline(
                values[best] + path.cv_error[best],
                color=COLORS["black"],
                ls=":",
                lw=1.0,
                label="lowest + one standard error",
            )
        place = path.index(self.chosen_)
        ax.plot(
            self.chosen_,
            values[place],
            "o",
            ms=9,
            mfc="none",
            color=COLORS["red"],
            label=f"chosen: k = {self.chosen_}",
        )
        ax.set_ylabel(TITLES[self.criterion])
        ax.set_title("Which k", fontsize=10)

    @property
    def _coefs(self) -> NDArray[np.float64]:
        """Coefficients by size and column; of several outputs, their root mean square."""
        coefs = self.path.coefs
        return coefs if coefs.ndim == 2 else np.sqrt(np.mean(coefs**2, axis=1))

    def _coefficients(self, ax: Any) -> None:
        path, coefs = self.path, self._coefs
        last = path.index(self.chosen_)
        inside = set(path.supports[last].tolist())
        for j in np.flatnonzero(np.any(coefs != 0, axis=0)):
            style = (
                {"color": COLORS["blue"], "lw": 1.2, "zorder": 2}
                if int(j) in inside
                else {"color": "0.75", "lw": 0.8, "zorder": 1}
            )
            held = coefs[:, j]
            # include the zero before a column enters, so that its line begins at the axis
            near = np.convolve(held != 0, [1, 1, 1], "same") > 0
            ax.plot(path.sizes, np.where(near, held, np.nan), **style)
        ax.plot([], [], color=COLORS["blue"], lw=1.2, label=f"among the chosen {self.chosen_}")
        if len(inside) < np.count_nonzero(np.any(coefs != 0, axis=0)):
            ax.plot([], [], color="0.75", lw=0.8, label="others")
        ax.axhline(0.0, color=COLORS["black"], lw=0.6)
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.18 * (high - low))  # room for the legend
        there = [j for j in inside if coefs[-1, j] != 0]
        self._name(ax, sorted(there, key=lambda j: -abs(coefs[-1, j]))[:NAMED])
        joint = self.path.coefs.ndim == 3
        ax.set_ylabel("coefficient (root mean square of the outputs)" if joint else "coefficient")
        ax.set_title("Coefficients of the best k columns", fontsize=10)
        ax.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)

    def _name(self, ax: Any, columns: list[int]) -> None:
        """Write names at the right margin, moved apart where they would overlap."""
        path, ends = self.path, self._coefs[-1]
        low, high = ax.get_ylim()
        gap = 0.055 * (high - low)
        place = -np.inf
        for j in sorted(columns, key=lambda j: ends[j]):
            place = max(float(ends[j]), place + gap)
            name = path.feature_names[j] if path.feature_names else str(j)
            ax.annotate(
                name,
                (path.sizes[-1], ends[j]),
                xytext=(1.02, place),
                textcoords=ax.get_yaxis_transform(),
                fontsize=7,
                va="center",
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "lw": 0.4, "color": "0.5"},
            )
