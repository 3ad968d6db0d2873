"""
A phase diagram in five minutes: evidence finds signals that ℓ1 misses
======================================================================

How many measurements does it take to recover a sparse signal? For M = αN Gaussian measurements of N
unknowns, k of which are not zero, theory knows the answer for N → ∞. There is a line for each method:
basis pursuit (the smallest ℓ1 norm) recovers the signal below one line, Bayes-optimal message passing
below a higher one, and an exhaustive search below k = M.

This example measures the diagram. `Sweep` describes an experiment, solvers on random instances at all
points of a grid, and runs it. Both solvers get the same instances, without noise. Neither is told how
many coefficients there are.

The sweep takes less than five minutes of one processor core; with ``L0ANNEAL_QUICK=1`` it has smaller
instances and a few points, and takes seconds.
"""

import os
import tempfile

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D

from l0anneal import Sweep, baselines, ensembles, theory

QUICK = os.environ.get("L0ANNEAL_QUICK") == "1"
N_COLUMNS, N_SAMPLES = (60, 3) if QUICK else (120, 12)
ALPHAS = [0.4, 0.8] if QUICK else [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
RATIOS = [0.2, 0.5, 0.9] if QUICK else [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
EXACT = 1e-6  # mean squared error per coefficient; the coefficients have variance 1
SKY, ORANGE, BLACK = "#56B4E9", "#D55E00", "#000000"


@Sweep.named("measurements")
def measurements(n_columns, alpha, ratio, random_state):
    """Draw α N measurements of a signal with k = ratio × α N coefficients."""
    rho_hat = ratio * alpha
    return ensembles.planted(n_columns, alpha, rho_hat, random_state=random_state, support="fixed")


@Sweep.named("basis pursuit")
def basis_pursuit(instance):
    """Recover the signal by the smallest ℓ1 norm."""
    return {"mse": instance.mse(baselines.basis_pursuit(instance.problem))}


# %%
# Run the sweep. The store is a folder with one file for each finished task. Here it is temporary; with
# a folder of your own, the sweep could be interrupted and continued. One cooling of evidence annealing
# is enough, because an exact fit needs no draws from the posterior.

sweep = Sweep(
    measurements,
    {
        "evidence": ("evidence_anneal", {"max_attempts": 1, "n_draws": 20}),
        "basis pursuit": basis_pursuit,
    },
    {"n_columns": N_COLUMNS, "alpha": ALPHAS, "ratio": RATIOS},
    n_samples=N_SAMPLES,
)
with tempfile.TemporaryDirectory() as store:
    sweep.run(store, n_jobs=1)
    data = sweep.gather(store)
recovered = (data.mse < EXACT).mean("sample")
print(f"{len(sweep)} tasks, {float(data.seconds.sum()):.0f} processor seconds")

# %%
# Compare the two solvers instance by instance.

exact = data.mse < EXACT
ours, theirs = exact.sel(solver="evidence"), exact.sel(solver="basis pursuit")
only_ours, only_theirs = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
print(f"recovered by evidence annealing alone: {only_ours} of {ours.size} instances")
print(f"recovered by basis pursuit alone: {only_theirs}; by both: {int((ours & theirs).sum())}")

# %%
# The lines of theory. `theory.phase_diagram` gives the smallest α for each ρ̂ = k/N; here they are drawn
# as k/M = ρ̂/α against α.

lines = theory.phase_diagram(np.linspace(0.01, 0.97, 6 if QUICK else 33))
names = {"alpha_bayes": "Bayes-optimal message passing", "alpha_l1": "basis pursuit (ℓ1)"}
limits = {name: (lines[name].values, (lines.rho_hat / lines[name]).values) for name in names}
lower, upper = (
    recovered.alpha.copy(data=np.interp(recovered.alpha, *limits[name]))
    for name in ("alpha_l1", "alpha_bayes")
)
between = (recovered.ratio > lower) & (recovered.ratio < upper)
for solver in ("evidence", "basis pursuit"):
    share = float(recovered.sel(solver=solver).where(between).mean())
    print(f"between the lines, {solver} recovers {share:.0%} of the instances")

# %%
# Draw the picture.

figure, panels = plt.subplots(1, 2, figsize=(11, 5), sharey=True, layout="constrained")
for axes, solver in zip(panels, ("evidence", "basis pursuit")):
    drawn = axes.pcolormesh(
        recovered.alpha,
        recovered.ratio,
        100 * recovered.sel(solver=solver).transpose("ratio", "alpha"),
        shading="nearest",
        cmap="cividis",
        vmin=0,
        vmax=100,
    )
    for name, colour, style in (("alpha_bayes", SKY, "-"), ("alpha_l1", ORANGE, "--")):
        axes.plot(*limits[name], style, lw=4.5, color=BLACK)
        axes.plot(*limits[name], style, lw=2.5, color=colour)
    axes.set(
        xlabel="measurements per unknown, α = M/N",
        xlim=(min(ALPHAS) - 0.05, max(ALPHAS) + 0.05),
        ylim=(min(RATIOS) - 0.05, max(RATIOS) + 0.05),
    )
panels[0].set(
    ylabel="coefficients per measurement, k/M",
    title=f"evidence annealing, N = {N_COLUMNS}",
)
panels[1].set_title(f"basis pursuit, N = {N_COLUMNS}")
handles = [
    Line2D([], [], color=SKY, lw=2.5, label=f"theory: {names['alpha_bayes']}"),
    Line2D([], [], color=ORANGE, lw=2.5, ls="--", label=f"theory: {names['alpha_l1']}"),
]
figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
figure.colorbar(drawn, ax=panels, label=f"recovered (% of {N_SAMPLES} instances)")
plt.show()

# %%
# What to conclude
# ----------------
# Each method works up to its line of theory, with the blur of a finite N. Between the two lines,
# evidence annealing recovers signals that basis pursuit misses, although it is told neither their
# number nor the size of their coefficients. The zone above the upper line is hard for both: the
# signal is determined there, but no quick method is known to find it. If your problem is below the ℓ1
# line, basis pursuit is enough. The lines are for independent Gaussian columns without noise; measure
# your own case with a function of your own in place of ``measurements``.
