"""
PySINDy with l0anneal: Lorenz's equations without a threshold to tune
=====================================================================

Sparse regression can find the equations of a system from a recording of it (SINDy): the derivatives of
the variables are regressed on a library of monomials, and few of them matter. PySINDy's default
optimiser, STLSQ, sets coefficients below a threshold to zero and fits the others again. The threshold
is in the units of the coefficients, and has to be known or tuned. `AnnealedSubsetRegressor` is an
estimator of scikit-learn, so PySINDy takes it as an optimiser. It infers the number of terms, needs no
threshold, and does not depend on units.

The recording here is simulated from Lorenz's equations with noise, so that the right terms and
coefficients are known::

    dx/dt = 10 (y − x)
    dy/dt = x (28 − z) − y
    dz/dt = x y − 8/3 z

The example takes about a minute; with ``L0ANNEAL_QUICK=1`` it has one recording at one level of noise.
It needs PySINDy: ``pip install '.[examples]'``.
"""

import os
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pysindy
from scipy.integrate import solve_ivp
from scipy.signal import savgol_filter

from l0anneal import AnnealedSubsetRegressor

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
NOISES = (0.01,) if QUICK else (0.005, 0.01, 0.02, 0.04)  # in standard deviations of each variable
N_RECORDINGS = 1 if QUICK else 5
THRESHOLDS = (0.01, 0.1, 0.5, 2.0)
SHOWN = 0.01
warnings.filterwarnings("ignore", "Sparsity parameter is too big")  # of the largest threshold
STEP, DURATION = 0.002, 20.0  # units of time
WINDOW, EVERY = 41, 40  # points
VARIABLES = ["x", "y", "z"]
BLUE, GREYS, MARKS = "#0072B2", ("0.75", "#E69F00", "#D55E00", "0.35"), "v^sD"


def lorenz(_, state):
    """Return the derivatives of x, y and z."""
    x, y, z = state
    return 10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z


def record(noise, seed):
    """Return a noisy recording, its smoothed states, and the smoothed derivatives."""
    rng = np.random.default_rng(seed)
    noisy = states + noise * states.std(axis=0) * rng.standard_normal(states.shape)
    kept = slice(WINDOW, -WINDOW, EVERY)
    smooth = savgol_filter(noisy, WINDOW, 3, axis=0)[kept]
    slope = savgol_filter(noisy, WINDOW, 3, deriv=1, delta=STEP, axis=0)[kept]
    return noisy, smooth, slope


def identify(optimizer, smooth, slope):
    """Return the equations that PySINDy finds with this optimiser."""
    model = pysindy.SINDy(optimizer=optimizer, feature_library=library)
    return model.fit(smooth, t=STEP * EVERY, x_dot=slope, feature_names=VARIABLES)


# %%
# The recording, and the library of all monomials up to degree three. Derivatives come from polynomials
# fitted to a moving window. Every fortieth point is kept, so that no noise is shared between rows:
# l0anneal, like every method that judges the noise from residuals, assumes independent rows.

times = np.arange(0, DURATION, STEP)
states = solve_ivp(lorenz, (0, DURATION), (-8, 8, 27), t_eval=times, rtol=1e-9, atol=1e-9).y.T
library = pysindy.PolynomialLibrary(degree=3)
terms = library.fit(states[:2]).get_feature_names(VARIABLES)
true = np.zeros((3, len(terms)))
for row, term, value in (
    *((0, "x", -10), (0, "y", 10)),
    *((1, "x", 28), (1, "y", -1), (1, "x z", -1)),
    *((2, "z", -8 / 3), (2, "x y", 1)),
):
    true[row, terms.index(term)] = value

# %%
# One recording. The regressor fits no intercept, because the library has a constant. PySINDy reads its
# ``coef_``, least squares on the chosen terms.

noisy, smooth, slope = record(SHOWN, seed=0)
ours = pysindy.WrappedOptimizer(AnnealedSubsetRegressor(fit_intercept=False, random_state=0))
model = identify(ours, smooth, slope)
model.print()
found = model.coefficients()
worst = np.max(np.abs(found - true)[true != 0] / np.abs(true[true != 0]))
print(
    f"{len(smooth)} rows, {len(terms)} terms; largest relative error of a coefficient {worst:.1%}"
)

# %%
# The probabilities of the terms, from the same fits.

for variable, fitted in zip(VARIABLES, ours.optimizer.estimators_):
    likely = np.argsort(-fitted.inclusion_probability_)[:4]
    shares = ", ".join(f"{terms[j]} {fitted.inclusion_probability_[j]:.2f}" for j in likely)
    print(f"d{variable}/dt: {shares}")

# %%
# Many recordings: how many of the three equations have exactly the right terms, for PySINDy's own
# optimiser with different thresholds, and for l0anneal.

optimizers = {
    **{f"STLSQ, threshold {t:g}": pysindy.STLSQ(threshold=t) for t in THRESHOLDS},
    "l0anneal, no threshold": ours,
}
right = {name: [] for name in optimizers}
for noise in NOISES:
    recordings = [record(noise, seed)[1:] for seed in range(N_RECORDINGS)]
    for name, optimizer in optimizers.items():
        patterns = [identify(optimizer, *rows).coefficients() != 0 for rows in recordings]
        right[name].append(np.mean([(p == (true != 0)).all(axis=1) for p in patterns]))
for name, shares in right.items():
    levels = ", ".join(f"{share:.0%} at {noise:.1%}" for share, noise in zip(shares, NOISES))
    print(f"{name}: equations with the right terms {levels} noise")

# %%
# Draw the picture.

figure, (left, axes) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
left.plot(
    noisy[:, 0], noisy[:, 2], ".", ms=1, mew=0, color="0.5", label=f"recorded, {SHOWN:.0%} noise"
)
left.plot(smooth[:, 0], smooth[:, 2], "o", ms=3, color=BLUE, label=f"used: {len(smooth)} rows")
left.set(xlabel="x (no units)", ylabel="z (no units)", title="The recording")
left.set_ylim(0, 58)
left.legend(frameon=False, loc="upper center", ncols=2, markerscale=3)
for (name, shares), colour, mark in zip(right.items(), (*GREYS, BLUE), MARKS + "o"):
    ours_or_not = {"lw": 2.5, "ms": 9, "zorder": 3} if colour == BLUE else {"ls": "--"}
    axes.plot(
        [100 * noise for noise in NOISES],
        [100 * share for share in shares],
        marker=mark,
        color=colour,
        label=name,
        **ours_or_not,
    )
axes.set(
    xlabel="noise (% of the standard deviation of each variable)",
    ylabel="equations with exactly the right terms (%)",
    title=f"{3 * N_RECORDINGS} equations at each level of noise",
    ylim=(-4, 104),
)
axes.set_xscale("log")
axes.set_xticks([100 * noise for noise in NOISES], [f"{100 * noise:g}" for noise in NOISES])
axes.minorticks_off()
axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
for panel in (left, axes):
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(alpha=0.3)
plt.show()

# %%
# What to conclude
# ----------------
# The threshold of STLSQ decides. A bad one fails at any level of noise, the recording alone does not
# say which one is good, and even a good one loses more equations than l0anneal as the noise grows.
# l0anneal finds the terms without a threshold, and states how sure it is of each; its price is time, a
# second where STLSQ takes milliseconds. It needs rows whose noise is independent, and it fails
# when the noise is so strong that smoothing leaves errors in the states themselves, for which no
# regression on these states can account.
