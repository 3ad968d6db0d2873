"""The verdicts on equilibrium and on populations, from data with known answers in both directions."""

import numpy as np
import xarray as xr

from l0anneal.reproduction.analysis import Theory
from l0anneal.reproduction.beyond import MSE_EDGES
from l0anneal.reproduction.figures import equilibrium, population
from l0anneal.reproduction.report import decided

HARD = {"alpha": 0.75, "rho": 0.65, "rho_hat": 0.5, "sigma_x2": 1.0, "sigma_xi2": 0.0}
NOISE = {"alpha": 0.5, "rho": 0.2, "rho_hat": 0.0, "sigma_x2": 0.0, "sigma_xi2": 1.0}
T = np.geomspace(2e-3, 4e-5, 12)
SIZES = (40, 80, 120)


def statuses(name, rows):
    return [decision.status for _, decision in decided({name: rows})[name]]


def tempered(at, gap, peaks, factor, n=300):
    """Return runs with a transition at ``at``, starts that differ by ``gap``, and given overlaps."""
    rng = np.random.default_rng(0)
    theory = Theory(HARD)
    shape = (len(SIZES), n, T.size)
    p = np.empty(shape)
    for i, size in enumerate(SIZES):
        centres = np.log(at) + 2 / np.sqrt(size) * rng.normal(size=(n, 1))
        p[i] = 1 / (1 + np.exp(3 * (np.log(T) - centres)))
    bins = np.zeros((*shape, MSE_EDGES.size - 1))
    bins[..., 10], bins[..., 24] = p, 1 - p  # errors far below and far above the bound
    overlaps = np.full((*shape, 79), np.nan)
    for i, size in enumerate(SIZES):
        k = round(0.65 * size)
        q = np.arange(k + 1) / k
        density = sum(np.exp(-0.5 * ((q - place) / 0.03) ** 2) for place in peaks)
        overlaps[i, :, :, : k + 1] = density / density.sum()
    overlaps *= 1 + 0.1 * rng.normal(size=(len(SIZES), n, 1, 1))
    energy = np.where(T > 3e-4, theory.at("distortion", T), theory.at("distortion", T, "planted"))
    energy = factor * energy * (1 + 0.02 * rng.normal(size=shape))
    curve, point = ("size", "sample", "mu"), ("size", "sample")
    counts = np.full(shape[:2], 30.0)
    variables = {
        "mse_histogram": ((*curve, "mse_histogram_bin"), bins),
        "overlap": ((*curve, "overlap_bin"), overlaps),
        "n_samples": ("size", np.full(len(SIZES), n)),
    }
    for suffix, shift in (("", 0.0), ("_truth", gap)):
        moved = p + shift + 0.05 * rng.normal(size=shape)
        variables |= {
            f"below_tenth{suffix}": (curve, moved),
            f"distortion{suffix}": (curve, energy),
            f"specific_heat{suffix}": (curve, energy / T),
            f"round_trips{suffix}": (point, counts),
            f"too_short{suffix}": (point, 0 * counts),
        }
    coords = {"size": list(SIZES), "mu": 1 / T, "temperature": ("mu", T)}
    return {"tempered": xr.Dataset(variables, coords=coords, attrs=HARD)}


def test_equilibrium_is_judged_both_ways():
    right = tempered(2.94e-4, 0.0, (0.67, 0.80), 1.0)
    assert statuses("equilibrium", equilibrium.judge(right)) == ["agrees"] * 7
    wrong = tempered(6e-4, 0.2, (0.735,), 1.3)
    assert statuses("equilibrium", equilibrium.judge(wrong)) == ["differs"] * 7
    assert len(equilibrium.draw(right).axes) == 6
    assert "(two peaks)" in equilibrium.findings(right)
    assert "(no two peaks)" in equilibrium.findings(wrong)


def test_a_size_with_a_sweep_of_its_own_counts_like_the_others():
    whole = tempered(2.94e-4, 0.0, (0.67, 0.80), 1.0)["tempered"]
    small = whole.sel(size=[40, 80]).isel(overlap_bin=slice(0, 53))
    large = whole.sel(size=[120])
    parts = {"tempered": small, "tempered-120": large}
    texts = [row.measured for row in equilibrium.judge({"tempered": whole})]
    assert [row.measured for row in equilibrium.judge(parts)] == texts
    fewer = {"tempered": small, "tempered-120": large.isel(sample=slice(0, 200))}
    assert "N = 120 (200 instances)" in equilibrium.judge(fewer)[0].measured
    other = large.assign_coords(mu=np.nextafter(large["mu"], 0.0))
    moved = equilibrium.judge({"tempered": small, "tempered-120": other})
    assert [row.measured for row in moved] == texts


def populations(shift, n=60):
    """Return populations and enumerations whose free entropies are off by ``shift`` nats."""
    rng = np.random.default_rng(0)
    mu = np.concatenate(([0.0], np.geomspace(0.05, 20.0, 32)))
    t = np.concatenate(([np.inf], 1 / mu[1:]))
    theory = Theory(NOISE)
    energy = np.concatenate(([0.3], theory.at("distortion", t[1:])))
    free = np.concatenate(([0.5], theory.at("free_entropy", t[1:])))

    def sweep(sizes, off):
        # `entropy` replaces log C(N, k)/N by its limit; here it is put back
        blank = xr.Dataset(
            {"free_entropy": (("size", "mu"), np.zeros((len(sizes), mu.size)))},
            coords={"size": sizes, "mu": mu, "temperature": ("mu", t)},
            attrs=NOISE,
        )
        blank["distortion"] = 0 * blank["free_entropy"]
        added = population.entropy(blank, planted=False)["free_entropy"].to_numpy()[:, None]
        noise = 0.002 * rng.normal(size=(len(sizes), n, mu.size))
        every = np.broadcast_to(energy, noise.shape)
        curve = ("size", "sample", "mu")
        return blank.drop_vars(["free_entropy", "distortion"]).assign(
            free_entropy=(curve, free - added + off + noise),
            distortion=(curve, every),
            trusted=(curve, np.ones(noise.shape)),
            n_samples=("size", np.full(len(sizes), n)),
        )

    return {
        "enumerated": sweep([20], 0.0),
        "population-small": sweep([20], shift),
        "population": sweep([50, 100], 10 * shift),
    }


def test_populations_are_judged_both_ways():
    assert statuses("population", population.judge(populations(0.0))) == ["agrees"] * 4
    assert statuses("population", population.judge(populations(0.01))) == ["differs"] * 4
    assert len(population.draw(populations(0.0)).axes) == 3
    assert "60 of 60 at N = 50" in population.findings(populations(0.0))
