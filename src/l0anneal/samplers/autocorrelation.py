"""The number of sweeps that it takes to get one independent sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["autocorrelation_time"]


def autocorrelation_time(series: ArrayLike, window: float = 5.0) -> float:
    """Return the integrated autocorrelation time τ = 1 + 2 Σ_t ρ(t) of a stationary series.

    The mean of n steps has the variance of n/τ independent ones. The sum ends at the first t ≥
    ``window`` τ(t), where further terms would add more noise than signal. The estimate can be
    trusted if the series is many times longer than τ, say fifty times. A constant series has τ = 1.

    Parameters
    ----------
    series : array of shape (n,)
        Values after each step, such as the energies after each sweep at one temperature.
    window : float
        The length of the sum, in units of τ.

    See Also
    --------
    temper : Reports this time for each temperature.
    RunTooShort : Raised if a run is short compared with this time.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import autocorrelation_time
    >>> white = np.random.default_rng(0).standard_normal(10_000)
    >>> bool(abs(autocorrelation_time(white) - 1.0) < 0.1)
    True
    """
    values = np.asarray(series, dtype=np.float64)
    if values.ndim != 1 or values.size < 2:
        raise ValueError(f"a series of two steps or more is needed; got shape {values.shape}")
    n = values.size
    values = values - values.mean()
    scale = float(np.max(np.abs(values)))
    if scale == 0.0 or not np.isfinite(scale):
        return 1.0
    spectrum = np.fft.rfft(values / scale, 2 * n)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2, 2 * n)[:n]
    times = 2.0 * np.cumsum(correlation / correlation[0]) - 1.0
    enough = np.arange(n) >= window * times
    cut = int(np.argmax(enough)) if enough.any() else n - 1
    return float(max(times[cut], 1.0 / n))
