"""Drawing that the figures share: points with error bars, lines of theory, axes, files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from l0anneal._util.figures import COLORS
from l0anneal.reproduction.analysis import Theory, mean_and_error
from l0anneal.reproduction.extra import check_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "DISTORTION_LABEL",
    "MSE_LABEL",
    "SHOWN_HIGH",
    "SHOWN_LOW",
    "T_LABEL",
    "curve",
    "finish",
    "limits",
    "lines",
    "points",
    "save",
    "size_style",
    "size_ticks",
    "thin",
]

T_LABEL = "temperature T = 1/μ (units of energy)"
DISTORTION_LABEL = "distortion ε = E/M"
MSE_LABEL = "mean squared error per column"
SHOWN_LOW, SHOWN_HIGH = 7.5e-5, 12.0  # temperatures: the paper's schedule and a little more
_BY_RANK = (
    *(("blue", "o"), ("orange", "s"), ("green", "^"), ("purple", "D")),
    *(("red", "v"), ("sky", "P")),
)


def size_style(rank: int) -> dict[str, Any]:
    """Return the colour and marker of the rank-th size."""
    color, marker = _BY_RANK[rank % len(_BY_RANK)]
    return {"color": COLORS[color], "marker": marker}


def thin(data: xr.Dataset, low: float, high: float, n: int = 34) -> xr.Dataset:
    """Select at most ``n`` temperatures between two, so that points do not overlap."""
    t = data["temperature"].to_numpy()
    inside = np.flatnonzero((t >= low) & (t <= high))
    step = max(1, -(-inside.size // n))
    return data.isel(mu=inside[::step])


def points(
    ax: Axes,
    data: xr.Dataset,
    name: str,
    *,
    low: float = 5e-5,
    high: float = 20.0,
    hollow: bool = False,
    label: str = "N = {size} ({n} samples)",
) -> None:
    """Draw a sweep's means over T with the paper's error bars, one marker for each size."""
    shown = thin(data, low, high)
    mean, error = mean_and_error(shown[name])
    for rank, size in enumerate(data["size"].to_numpy()):
        n = int(data["n_samples"].sel(size=size))
        if n == 0:
            continue
        style = size_style(rank)
        face = "none" if hollow else style["color"]
        ax.errorbar(
            shown["temperature"],
            mean.sel(size=size),
            None if n == 1 else error.sel(size=size),
            ls="none",
            ms=3.5,
            mew=0.8,
            lw=0.9,
            mfc=face,
            label=label.format(size=size, n=n) if label else None,
            **style,
        )


def lines(
    ax: Axes, theory: Theory, name: str, low: float, high: float, *, label: str = "theory, N → ∞"
) -> None:
    """Draw the theory: equilibrium in black, and both branches if there is a transition."""
    transition = theory.exact.transition()
    if transition is None:
        line = theory.line("cooled", low, high)
        ax.plot(line["temperature"], line[name], color=COLORS["black"], lw=1.4, label=label)
        return
    at = transition.temperature
    cooled, planted = theory.line("cooled", low, high), theory.line("planted", low, high)
    style: dict[str, Any] = {"color": COLORS["black"], "lw": 1.6}
    warm, cold = theory.line("cooled", at, high), theory.line("planted", low, at)
    ax.plot(warm["temperature"], warm[name], label="theory, equilibrium", **style)
    ax.plot(cold["temperature"], cold[name], **style)
    below = cooled.sel(temperature=cooled["temperature"] <= at)
    ax.plot(
        below["temperature"],
        below[name],
        color=COLORS["red"],
        ls="--",
        lw=1.6,
        label="theory, metastable (cooled)",
    )
    above = planted.sel(temperature=planted["temperature"] >= at)
    ax.plot(
        above["temperature"],
        above[name],
        color=COLORS["sky"],
        ls="-.",
        lw=1.6,
        label="theory, planted above T_c",
    )
    ax.axvline(at, color="0.6", lw=0.9, ls=":", label=f"T_c = {at:.3g}")


def finish(
    ax: Axes, x: str, y: str, title: str = "", *, logx: bool = False, logy: bool = False
) -> None:
    """Label the axes and give them the common look."""
    if logx:
        ax.set_xscale("log")
    if logy:
        ax.set_yscale("log", nonpositive="clip")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if title:
        ax.set_title(title, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="0.93", lw=0.6)
    ax.set_axisbelow(True)


def size_ticks(ax: Axes, sizes: Iterable[int]) -> None:
    """Mark a logarithmic axis at the sizes of the systems and nowhere else."""
    shown = sorted(set(sizes))
    ax.set_xticks(shown, [str(size) for size in shown])
    ax.minorticks_off()


def limits(ax: Axes, *theory: ArrayLike, pad: float = 4.0) -> None:
    """Set the range of a logarithmic axis by the theory, not by the longest error bar."""
    flat = np.concatenate([np.ravel(np.asarray(values)) for values in theory])
    ax.set_ylim(np.nanmin(flat) / pad, np.nanmax(flat) * pad)


def curve(ax: Axes, data: xr.Dataset, name: str, title: str, *, medians: bool = False) -> None:
    """Draw one panel on logarithmic axes: a sweep's points on the line of theory.

    With ``medians``, those of the largest size are drawn as well, as open symbols.
    """
    theory = Theory(data.attrs)
    points(ax, data, name, low=SHOWN_LOW, high=SHOWN_HIGH)
    if medians:
        shown = thin(data, SHOWN_LOW, SHOWN_HIGH)
        style = size_style(data["size"].size - 1)
        label = f"N = {int(data['size'][-1])}, median"
        median = shown[name].isel(size=-1).median("sample")
        ax.plot(shown["temperature"], median, ls="none", ms=5, mfc="none", label=label, **style)
    lines(ax, theory, name, SHOWN_LOW, SHOWN_HIGH)
    label = DISTORTION_LABEL if name == "distortion" else MSE_LABEL
    finish(ax, T_LABEL, label, title, logx=True, logy=True)
    limits(ax, theory.line("cooled", SHOWN_LOW, SHOWN_HIGH)[name])


def save(figure: Figure, directory: Path, name: str) -> dict[str, Path]:
    """Write a figure as SVG and PNG; the same figure always gives the same bytes."""
    check_extra()
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from PIL import Image

    directory.mkdir(parents=True, exist_ok=True)
    paths = {suffix: directory / f"{name}.{suffix}" for suffix in ("svg", "png")}
    # savefig would lay out the figure for each file, and draw it twice for each of them
    figure.set_dpi(130)
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    FigureCanvasAgg(figure).print_png(paths["png"], metadata={"Software": None})
    # a palette would be smaller, but merges colours that few pixels have, such as those of symbols
    with Image.open(paths["png"]) as image:
        opaque = image.convert("RGB")
    opaque.save(paths["png"], optimize=True)
    with mpl.rc_context({"svg.hashsalt": "l0anneal", "svg.fonttype": "none"}):
        FigureCanvasSVG(figure).print_svg(paths["svg"], metadata={"Date": None})
    # a hundredth of a point is finer than any screen, and the file is half as large
    text = paths["svg"].read_text(encoding="utf-8")
    text = re.sub(r"(\d+\.\d{2})\d+", r"\1", text)
    paths["svg"].write_text(text, encoding="utf-8")
    return paths
