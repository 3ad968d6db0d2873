"""Draw the pictures of ``how_it_works.md``: ``python docs/pictures.py`` writes them to ``docs/images``.

Everything is computed here, with fixed seeds; it takes about a minute. The colours are those of Okabe
and Ito, which colour-blind readers can tell apart, and every line also has a style or a marker of its
own.
"""

from itertools import combinations
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from l0anneal import Schedule, anneal, ensembles, evidence_anneal, theory

IMAGES = Path(__file__).parent / "images"
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.45"
ALPHA, RHO, RHO_HAT = 0.75, 0.65, 0.5  # the paper's hard case
GAP = 1.7  # between the blocks of the tableau
N, N_INSTANCES = 200, 6


def save(figure, name):
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / f"{name}.png", dpi=130)
    plt.close(figure)
    print(IMAGES / f"{name}.png")


def instances(alpha, rho_hat, number):
    return [
        ensembles.planted(N, alpha, rho_hat, support="fixed", random_state=seed)
        for seed in range(number)
    ]


def mean_trace(runs, name):
    """Temperatures of runs with the same schedule, and the mean of an observable at each."""
    mu = np.array(runs[0].schedule.mu)
    values = [run.trajectory[name].to_numpy().reshape(mu.size, -1).mean(axis=1) for run in runs]
    return 1 / mu, np.mean(values, axis=0)


def draw_support():
    """A matrix with three chosen columns, and the energies of all 220 supports of three columns."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((8, 12))
    A /= np.linalg.norm(A, axis=0)
    chosen = (2, 6, 9)
    y = A[:, chosen] @ [1.0, -1.4, 0.8] + 0.1 * rng.standard_normal(8)

    def energy(support):
        return 0.5 * np.linalg.lstsq(A[:, support], y, rcond=None)[1][0]

    energies = {support: energy(support) for support in combinations(range(12), 3)}
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    left.imshow(A, cmap="Greys", vmin=-0.9, vmax=0.9)
    left.imshow(y[:, None], cmap="Greys", vmin=-1.5, vmax=1.5, extent=(13.5, 14.5, 7.5, -0.5))
    for j in chosen:
        left.add_patch(Rectangle((j - 0.5, -0.5), 1, 8, fill=False, ec=ORANGE, lw=3))
    left.set(xlim=(-0.6, 14.7), xticks=[*range(12), 14], yticks=[], ylim=(7.6, -0.6))
    left.set_xticklabels([*map(str, range(12)), "y"])
    left.set(title="A support: three of twelve columns", xlabel="column")
    order = sorted(energies.values())
    right.plot(range(1, 221), order, ".", color=BLUE, ms=4, label="a support of three columns")
    right.plot(1, energies[chosen], "s", ms=9, color=ORANGE, label="the one on the left")
    right.set(yscale="log", xlabel="rank among all 220 supports", ylabel="energy, ½‖y − Ax‖²")
    right.set(title="Each support has an energy")
    right.legend(frameon=False)
    save(figure, "how_support")


def draw_annealing():
    """The distortion along a cooling, on easy problems, with the theory."""
    cooling = Schedule.custom(np.geomspace(0.5, 3e4, 45), 10)
    runs = [
        anneal(instance.problem, 60, cooling, random_state=0)
        for instance in instances(0.8, 0.2, N_INSTANCES)
    ]
    easy = theory.ReplicaSymmetric(0.8, 0.3, 0.2)
    curve = easy.curve(np.geomspace(2, 1e-4, 60))
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(curve["temperature"], curve["distortion"], color=GREY, label="theory, N → ∞")
    label = f"cooled runs, mean of {N_INSTANCES} problems, N = {N}"
    axes.plot(*mean_trace(runs, "distortion"), "o", ms=4, color=BLUE, label=label)
    axes.set(
        xscale="log", yscale="log", xlabel="temperature T", ylabel="distortion, energy per row"
    )
    axes.invert_xaxis()
    axes.annotate("hot: nearly every\nexchange is accepted", (1.2, 1.5e-3), color=GREY, va="top")
    axes.annotate("cold: only improvements\nare accepted", (8e-4, 3e-3), color=GREY, ha="center")
    axes.set_title("Cooling easy problems: the runs stay in equilibrium")
    axes.legend(frameon=False, loc="lower left")
    save(figure, "how_annealing")


def hard_runs(instance):
    """A cooled run, and one that is heated from the planted support, of the same hard instance."""
    cooling = Schedule.custom(np.geomspace(1, 1e6, 40), 10)
    watched = {"mse": instance.mse}
    k = round(RHO * N)
    cooled = anneal(instance.problem, k, cooling, observables=watched, random_state=0)
    outside = np.setdiff1d(np.arange(N), instance.support)[: k - instance.support.size]
    heated = anneal(
        instance.problem,
        k,
        cooling.reversed(),
        initial_support=np.append(instance.support, outside),
        observables=watched,
        random_state=0,
    )
    return cooled, heated


def draw_trap():
    """Both branches of the hard case in theory, and runs that follow them."""
    hard = theory.ReplicaSymmetric(ALPHA, RHO, RHO_HAT)
    critical, end = hard.transition().temperature, hard.spinodals().planted
    cold = np.geomspace(2e-6, 1, 120)
    cooled_states = [hard.at(T, branch="cooled") for T in cold]
    planted = [(T, hard.at(T, branch="planted")) for T in cold[cold < 0.999 * end]]
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    runs = list(zip(*(hard_runs(instance) for instance in instances(ALPHA, RHO_HAT, N_INSTANCES))))
    for axes, name, label in zip(
        panels, ("distortion", "mse"), ("error of the fit, ε", "error of the coefficients, MSE")
    ):
        axes.plot(
            cold,
            [getattr(s, name) for s in cooled_states],
            color=BLUE,
            label="theory, typical supports",
        )
        axes.plot(
            [T for T, _ in planted],
            [getattr(s, name) for _, s in planted],
            "--",
            color=ORANGE,
            label="theory, near the planted one",
        )
        for same, marker, color, text in zip(
            runs, "ov", (BLUE, ORANGE), ("runs, cooled", "runs, heated from the truth")
        ):
            trace = mean_trace(same, name)
            axes.plot(*trace, marker, ms=4, mfc="none", color=color, label=text)
        axes.axvline(critical, color=GREY, ls=":", lw=1)
        axes.text(critical, 0.96, " $T_c$", color=GREY, transform=axes.get_xaxis_transform())
        axes.set(xscale="log", yscale="log", xlabel="temperature T", ylabel=label, xlim=(1.5, 7e-7))
    panels[0].legend(frameon=False, fontsize=9, loc="lower left")
    figure.suptitle("A hard problem: cooled runs do not cross to the other branch")
    save(figure, "how_trap")


def draw_evidence():
    """Height against area of the likelihood, and how many signals both weights find."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4), layout="constrained", width_ratios=(2, 1)
    )
    x = np.linspace(-4, 4, 801)
    wrong = 1.15 * np.exp(-((x + 2.4) ** 2) / (2 * 0.12**2))
    true = 1.0 * np.exp(-((x - 1) ** 2) / (2 * 0.8**2))
    left.fill_between(x, wrong, color=BLUE, alpha=0.35)
    left.plot(x, wrong, color=BLUE)
    left.fill_between(x, true, color=ORANGE, alpha=0.35, hatch="//", ec=ORANGE)
    left.plot(x, true, "--", color=ORANGE)
    left.text(-2.4, 1.2, "a wrong support:\nbest fit, finely tuned", ha="center", color=BLUE)
    left.text(1, 1.05, "the planted support:\nmany coefficients fit", ha="center", color=ORANGE)
    left.set(ylim=(0, 1.5), xticks=[], yticks=[], xlabel="coefficients", ylabel="how well they fit")
    left.set_title("The paper weighs the height, the evidence the area")
    hard = instances(ALPHA, RHO_HAT, 20)
    k = round(RHO * N)
    found = [
        sum(i.mse(anneal(i.problem, k, random_state=0).coef) < 1e-6 for i in hard),
        sum(
            i.mse(evidence_anneal(i.problem, max_messages=0, random_state=0).coef) < 1e-6
            for i in hard
        ),
    ]
    bars = right.bar(
        ["best fit\n(anneal)", "evidence\n(evidence_anneal)"], found, color=[BLUE, ORANGE]
    )
    bars[1].set_hatch("//")
    right.bar_label(bars)
    right.set(
        ylim=(0, 22),
        yticks=range(0, 21, 5),
        ylabel="planted signals found, of 20",
        title="The hard problem",
    )
    save(figure, "how_evidence")
    print(f"found by annealing: {found[0]} of 20, by evidence annealing: {found[1]} of 20")


def draw_tableau():
    """The blocks of the tableau, and the entries that one proposal reads."""
    figure, axes = plt.subplots(figsize=(10, 5), layout="constrained")
    k, rest = 4, 9
    cell = {"lw": 1.5, "ec": "0.3"}
    blocks = [
        (0, 0, k, k, GREEN, "U"),
        (k + 0.6, 0, 1, k, GREEN, "x"),
        (0, k + GAP, k, rest, BLUE, "W"),
        (k + 0.6, k + GAP, 1, rest, BLUE, "r"),
        (k + 2.2, k + GAP, 1, rest, BLUE, "γ"),
    ]
    for left, top, width, height, color, name in blocks:
        axes.add_patch(Rectangle((left, top), width, height, fc=color, alpha=0.25, **cell))
        axes.text(left + width / 2, top - 0.12, name, ha="center", va="bottom", fontsize=14)
    slot, outside = 2, 5
    read = [(slot, slot), (k + 0.6, slot), (slot, k + GAP + outside)]
    read += [(k + 0.6, k + GAP + outside), (k + 2.2, k + GAP + outside)]
    for left, top in read:
        axes.add_patch(Rectangle((left, top), 1, 1, fc=ORANGE, ec="0.2", hatch="//"))
    axes.text(-0.3, k / 2, "k columns\ninside", ha="right", va="center", color=GREEN, fontsize=12)
    axes.text(
        -0.3,
        k + GAP + rest / 2,
        "N − k columns\noutside",
        ha="right",
        va="center",
        color=BLUE,
        fontsize=12,
    )
    notes = [
        "U: inverse of the products of the chosen columns",
        "x: their coefficients",
        "W: each outside column, regressed on the chosen ones",
        "r: its correlation with the residual",
        "γ: what of it lies outside their span",
        "",
        "The five hatched numbers tell by how much the energy",
        "changes if one inside column is exchanged for one outside.",
    ]
    axes.text(k + 4.2, 0.2, "\n".join(notes), va="top", fontsize=12, linespacing=1.6)
    axes.set(xlim=(-4.5, 25), ylim=(k + rest + 2, -1.2))
    axes.set_aspect("equal")
    axes.axis("off")
    save(figure, "how_tableau")


if __name__ == "__main__":
    for draw in (draw_support, draw_annealing, draw_trap, draw_evidence, draw_tableau):
        draw()
