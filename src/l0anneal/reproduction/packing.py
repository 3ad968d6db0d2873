"""Pack free entropies, which follow from the energies of a run up to rounding.

A data file holds the first free entropy of a run and, for all others, the difference between their bits
and those of the integral that `_integrated` computes from the run's distortions. Most differences fit
in a byte, where the numbers themselves would be a third of all data. Adding the differences gives the
numbers back to the last bit.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

__all__ = ["pack", "unpack"]

Floats = NDArray[np.float64]
_PACKED = "free_entropy_code"
_ORDER = ("size", "sample", "mu")
_SAYS = (
    "bits of free_entropy minus those of an integral over distortion, as zigzag codes; "
    "l0anneal.reproduction.datasets.read_dataset returns free_entropy"
)


def pack(data: xr.Dataset) -> xr.Dataset:
    """Replace the free entropy by how its bits differ from those of the integral."""
    if "free_entropy" not in data or data["free_entropy"].dims != _ORDER:
        return data
    exact = data["free_entropy"]
    code = _bits(exact.to_numpy()).copy()
    code[..., 1:] -= _bits(_integrated(data, exact.to_numpy()[..., :1]))
    code = code << 1 ^ code >> 63  # small numbers of both signs become 0, 1, 2, …
    attrs = {**exact.attrs, "says": _SAYS}
    return data.drop_vars("free_entropy").assign({_PACKED: (_ORDER, code, attrs)})


def unpack(data: xr.Dataset) -> xr.Dataset:
    """Undo `pack`."""
    if _PACKED not in data:
        return data
    code = data[_PACKED].to_numpy()
    bits = code >> 1 & np.int64(2**63 - 1) ^ -(code & 1)
    bits[..., 1:] += _bits(_integrated(data, bits[..., :1].view(np.float64)))
    attrs = {name: text for name, text in data[_PACKED].attrs.items() if name != "says"}
    return data.drop_vars(_PACKED).assign(free_entropy=(_ORDER, bits.view(np.float64), attrs))


def _bits(values: Floats) -> NDArray[np.int64]:
    return np.ascontiguousarray(values).view(np.int64)


def _integrated(data: xr.Dataset, first: Floats) -> Floats:
    """Return g after the first μ by g(μ) = g(μ₁) − ∫⟨E⟩dμ'/N, as the sampler does up to rounding.

    The energies are interpolated as in SciPy's ``PchipInterpolator``. Only sums, products, quotients
    and cumulative sums of NumPy are used: these have the same bits on every machine.
    """
    columns = data["size"].to_numpy().astype(np.float64)[:, None, None]
    energy = data["distortion"].to_numpy() * np.rint(data.attrs["alpha"] * columns)
    h = np.diff(data["mu"].to_numpy())
    with np.errstate(all="ignore"):
        slope = _slopes(h, np.diff(energy) / h)
        parts = h * (energy[..., :-1] + energy[..., 1:]) / 2.0
        parts = parts + h * h * (slope[..., :-1] - slope[..., 1:]) / 12.0
        found = first - np.cumsum(parts, axis=-1) / columns
    return np.where(np.isfinite(found), found, 0.0)


def _slopes(h: Floats, secant: Floats) -> Floats:
    """Return the derivatives at all points from the steps and the slopes of the secants."""
    slope = np.zeros((*secant.shape[:-1], h.size + 1))
    if h.size < 2:
        return slope + secant
    before, after = secant[..., :-1], secant[..., 1:]
    w1, w2 = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    mean = (w1 + w2) / (w1 / before + w2 / after)
    slope[..., 1:-1] = np.where(before * after > 0, mean, 0.0)
    slope[..., 0] = _end(h[0], h[1], secant[..., 0], secant[..., 1])
    slope[..., -1] = _end(h[-1], h[-2], secant[..., -1], secant[..., -2])
    return slope


def _end(h0: float, h1: float, s0: Floats, s1: Floats) -> Floats:
    """Return the derivative at an end: that of a parabola, limited to keep the curve monotonic."""
    slope = ((2.0 * h0 + h1) * s0 - h0 * s1) / (h0 + h1)
    slope = np.where(slope * s0 > 0, slope, 0.0)
    too_steep = (s0 * s1 <= 0) & (np.abs(slope) > np.abs(3.0 * s0))
    return np.where(too_steep, 3.0 * s0, slope)
