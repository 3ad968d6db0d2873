"""Rows of the table for the numbers: levels without a plan, times, ρ, noise, seeding."""

from __future__ import annotations

import numpy as np

from l0anneal.reproduction import rules
from l0anneal.reproduction.analysis import Theory, fitted_order, mean_and_error
from l0anneal.reproduction.drawing import Data
from l0anneal.reproduction.figures_beyond import (
    COOL,
    PAPER_SECONDS,
    found,
    median_seconds,
    nearest_temperature,
    over_rho,
    rhos_of,
    theory_over_rho,
)
from l0anneal.reproduction.paper import RHOS
from l0anneal.reproduction.rules import Row, Status, pm

__all__ = ["freezing", "noise_only", "noisy", "phase_diagram", "rho", "seeded", "time"]


def _by_size(values: object, label: str = "N = ") -> str:
    mean, error = mean_and_error(values)  # type: ignore[arg-type]
    return ", ".join(
        f"{label}{int(size)}: {pm(float(mean.sel(size=size)), float(error.sel(size=size)))}"
        for size in mean["size"].to_numpy()
    )


def noise_only(data: Data) -> list[Row]:
    """ε of l1, l1 + LS, OMP and annealing, ε_0, and the curve."""
    from l0anneal.theory import l1, rsb

    source = data["noise"]
    theory = Theory(source.attrs).exact
    frozen, unstable = theory.freezing("cooled"), theory.at_instability("cooled")
    assert frozen is not None
    assert unstable is not None
    split = unstable.temperature
    rows = []
    both = rules.compare(source, "distortion", split, rules.HIGH)
    text, status = rules.judge(*both)
    if status != "agrees" and both[0] is not None and both[0].absolute < 0.02:
        text = (
            f"by eye it does (at most {both[0].absolute:.3f} off on an axis to 0.3); in error bars "
            "the run lags behind at the cold end"
        )
        status = "partly"
    rows.append(
        Row(
            f"ε(T), noise only (.5, .2), T ≥ {split:.2f}",
            "agrees well over the long range",
            f"RS line; RS is stable down to T = {split:.3f}",
            rules.describe(source, *both),
            text,
            status,
        )
    )
    below, limit = rules.compare(source, "distortion", frozen.temperature, split)
    off = below is not None and below.rms > rules.SIGMAS
    rows.append(
        Row(
            f"ε(T), noise only, T < {split:.2f}",
            "a systematic deviation, put down to the rapid schedule",
            "RS unstable here (AT): the line itself is too low",
            rules.describe(source, below, limit),
            "agrees: it deviates; the theory's own failure has a part in it"
            if off
            else "no deviation seen with these samples",
            "agrees" if off else "partly",
        )
    )
    for name, key, sweep, printed, value in (
        ("ε of l1", "distortion", "l1", 0.214, l1.distortion(0.5, 0.2)),
        (
            "ε of l1 + LS",
            "refit_distortion",
            "l1",
            0.0966,
            l1.distortion_after_least_squares(0.5, 0.2),
        ),
    ):
        mean, error = mean_and_error(data[sweep][key].isel(size=-1))
        off_by = (float(mean) - value) / float(error)
        agrees = f"{value:.3g}" == f"{printed:.3g}"
        rows.append(
            Row(
                name,
                f"{printed}",
                f"{value:.7f}",
                _by_size(data[sweep][key]),
                f"{'agrees' if agrees else 'differs'}; measured {off_by:+.1f} error bars from "
                "theory at the largest N",
                "agrees" if agrees and abs(off_by) <= rules.SIGMAS else "partly",
            )
        )
    rows.append(_level("ε of OMP", data["omp"]["distortion"], 0.0365, 6.7e-4))
    rows.append(
        _level("ε of annealing at μ_100, τ = 5", source["final_distortion"], 0.0272, 6.2e-4)
    )
    ground = rsb.ground_state(theory).distortion
    rows.append(
        Row(
            "ε_0, the achievable limit",
            "0.00919",
            f"RS, s = 0: {frozen.distortion:.6f} at T = {frozen.temperature:.5f}; "
            f"1RSB: {ground:.5f}",
            "not reached at these sizes",
            f"not reproduced: {100 * (0.00919 / frozen.distortion - 1):.1f} % above our RS value, "
            "and RS is unstable there; "
            "the limit to expect is the 1RSB one",
            "differs",
        )
    )
    return rows


def _level(name: str, values: object, printed: float, printed_error: float) -> Row:
    mean, error = mean_and_error(values.isel(size=-1))  # type: ignore[attr-defined]
    z = (float(mean) - printed) / np.hypot(float(error), printed_error)
    side = "lower" if z < 0 else "higher"
    status: Status = "agrees" if abs(z) <= rules.SIGMAS else "differs"
    size = int(values["size"][-1])  # type: ignore[index]
    text = f"{z:+.1f} error bars from the paper's N = 400"
    if size != 400:
        text = f"at N = {size}, not the paper's 400: {z:+.1f} error bars"
        status = "partly"
    elif status == "differs":
        text = f"not reproduced: {side} than the paper's by {abs(z):.1f} error bars"
    return Row(name, pm(printed, printed_error), "–", _by_size(values), text, status)


def freezing(data: Data) -> list[Row]:
    """Freezing of the metastable branch: T and ε."""
    from l0anneal.theory import rsb

    source = data["freezing"]
    theory = Theory(source.attrs).exact
    frozen = theory.freezing("cooled")
    assert frozen is not None
    at_theirs = theory.at(1.3e-7, "cooled")
    ground = rsb.ground_state(theory)
    parts = []
    slow = data["freezing-slow"]
    runs = [(source, size, "τ = 5") for size in source["size"].to_numpy()]
    runs += [(slow, size, "slower") for size in slow["size"].to_numpy()]
    for run, size, rate in runs:
        chosen = run.sel(size=size)
        trapped = chosen["final_mse"] > 1e-3
        if int(trapped.sum()):
            level = float(chosen["distortion"].isel(mu=-1).where(trapped).median())
            parts.append(
                f"N = {size}, {rate}: {level:.1e} (median of {int(trapped.sum())} trapped of "
                f"{int(chosen['n_samples'])})"
            )
    return [
        Row(
            "freezing of the metastable branch, T",
            "1.3e-7",
            f"{frozen.temperature:.4e} (s = 0); at 1.3e-7 our s is {at_theirs.entropy:+.4f}",
            "–",
            f"not reproduced: {100 * (1 - frozen.temperature / 1.3e-7):.0f} % below the paper's",
            "differs",
        ),
        Row(
            "ε where it freezes",
            "8.6e-9",
            f"{frozen.distortion:.4e} (RS), {ground.distortion:.4e} (1RSB); ε(1.3e-7) = "
            f"{at_theirs.distortion:.3e}",
            "end of the runs, " + "; ".join(parts),
            "theory: the paper's (T, ε) lies on our curve, where s is not yet 0. Runs of these "
            "sizes and this rate stop much higher",
            "differs",
        ),
    ]


def phase_diagram(data: Data) -> list[Row]:
    """α_c of l1, and who recovers what on either side."""
    from l0anneal.theory import l1

    value = l1.reconstruction_limit(0.5)
    size = int(data["bp-hard"]["size"][-1])
    rows = [
        Row(
            "α_c of l1 at ρ̂ = 0.5",
            "0.831",
            f"{value:.7f}",
            f"basis pursuit, N = {size}: α = .8: {_of(found(data['bp-hard'], 'mse'))}, "
            f"α = .75: {_of(found(data['bp-slow'], 'mse'))} recovered",
            "agrees",
            "agrees",
        )
    ]
    counts = found(data["hard"]), found(data["bp-hard"], "mse")
    better = counts[0][0] / max(counts[0][1], 1) > counts[1][0] / max(counts[1][1], 1)
    rows.append(
        Row(
            "annealing beats l1 at (.8, .55, .5)",
            "yes",
            "annealing's branch leads to the plan; l1's limit is above α = .8",
            f"annealing {_of(counts[0])}, basis pursuit {_of(counts[1])} (MSE < 1e-3)",
            "agrees" if better else "not at this size",
            "agrees" if better else "differs",
        )
    )
    return rows


def _of(counts: tuple[int, int]) -> str:
    return f"{counts[0]} of {counts[1]}"


def _order_of(data: Data, *names: str) -> tuple[float, list[int], list[float]]:
    """Fitted order in N of the median seconds, with the sizes and seconds themselves."""
    sizes, seconds = median_seconds(data, *names)
    return (fitted_order(sizes, seconds) if len(sizes) > 1 else np.nan), sizes, seconds


def time(data: Data) -> list[Row]:
    """Seconds and their order in N."""
    order, sizes, seconds = _order_of(data, "noise", "noise-large")
    l1_order, _, l1_seconds = _order_of(data, "l1", "l1-large")
    listed = ", ".join(f"N = {n}: {s:.3g}" for n, s in zip(sizes, seconds))
    paper = [s / PAPER_SECONDS[n] for n, s in zip(sizes, seconds) if n in PAPER_SECONDS]
    ratio = f"{1 / max(paper):.0f} to {1 / min(paper):.0f} times faster" if paper else "–"
    close = abs(order - l1_order) < 1.0
    return [
        Row(
            "seconds for one run, (.5, .2), τ = 5",
            "6, 15, 38 at N = 100, 200, 400 (MATLAB; order 1.3)",
            "–",
            f"{listed} (medians, {_workers(data)})",
            f"{ratio} than the paper's times, machine and language included",
            "new",
        ),
        Row(
            "order in N, and that of l1",
            "N³ at most; comparable to l1",
            "N³ for accepted moves, N² for rejected ones",
            f"annealing N^{order:.1f}; the l1 path N^{l1_order:.1f} "
            f"({seconds[-1] / l1_seconds[-1]:.1f} times the l1 time at N = {sizes[-1]})",
            "agrees: same order within one power" if close else "orders differ here",
            "agrees" if close else "partly",
        ),
    ]


def _workers(data: Data) -> str:
    return f"{int(data['noise']['n_samples'][-1])} samples, processor time"


def rho(data: Data) -> list[Row]:
    """Less distortion with more columns; the trap at larger ρ."""
    rows = []
    for group in ("rho-noise-a", "rho-noise-b"):
        t = nearest_temperature(data, group, COOL)
        x, mean, error = over_rho(data, group, "distortion", COOL)
        z = (mean - theory_over_rho(group, "distortion", t, list(x))) / error
        end = over_rho(data, group, "distortion", None)[1]
        falls = bool(np.all(np.diff(end) < 0))
        rows.append(
            Row(
                f"ε over ρ, noise only, α = {RHOS[group][0]:g}",
                "larger ρ, less distortion",
                "falls with ρ at every T",
                f"final ε falls from {end[0]:.2g} (ρ = {x[0]:g}) to {end[-1]:.2g} (ρ = {x[-1]:g}); "
                f"at T = {t:.2g} within {np.max(np.abs(z)):.1f} error bars of RS",
                "agrees" if falls else "not monotone with these samples",
                "agrees" if falls else "partly",
            )
        )
    for group in ("rho-planted-a", "rho-planted-b"):
        x, mse, error = over_rho(data, group, "mse", None)
        rhos = ", ".join(f"{r:g}: {pm(m, e)}" for r, m, e in zip(x, mse, error))
        least = float(x[int(np.argmin(mse))])
        larger = bool(mse[-1] > 3 * mse.min())
        rows.append(
            Row(
                f"final MSE over ρ, planted, α = {RHOS[group][0]:g}",
                "smaller ρ ≥ ρ̂ suppresses the metastable state",
                _trap(data, group),
                f"by ρ: {rhos}",
                f"{'agrees' if larger else 'not seen'}: least error at ρ = {least:g}"
                + (", not at the smallest" if least > x[0] else ""),
                "agrees" if larger else "partly",
            )
        )
    return rows


def _trap(data: Data, group: str) -> str:
    """At which of the runs' ρ the theory has a metastable state."""
    by_rho = {
        value: Theory(data[f"{group}-{value:g}"].attrs).exact.spinodals().planted is not None
        for value in rhos_of(data, group)
    }
    free = ", ".join(f"{value:g}" for value, trapped in by_rho.items() if not trapped)
    trapped = ", ".join(f"{value:g}" for value, trapped in by_rho.items() if trapped)
    return f"metastable state at ρ = {trapped or '–'}; none at {free or '–'}"


def noisy(data: Data) -> list[Row]:
    """The temperature of least error, in theory and in the runs."""
    rows = []
    for name in ("weak", "strong"):
        source, one = data[f"noisy-{name}"], data[f"noisy-{name}-one"]
        theory = Theory(source.attrs)
        line = theory.line("cooled", 2e-3, 5.0, 60)
        unstable = theory.exact.at_instability("cooled")
        doubt = "" if unstable is None else f"; RS unstable below T = {unstable.temperature:.2g}"
        best = line.isel(temperature=int(np.argmin(line["mse"].to_numpy())))
        shown = source.sel(mu=(source["temperature"] >= 2e-3) & (source["temperature"] <= 5.0))
        mean, _ = mean_and_error(shown["mse"].isel(size=-1))
        least = int(np.argmin(mean.to_numpy()))
        # the same samples at both temperatures: the difference is what counts
        gain, error = mean_and_error(
            (shown["mse"].isel(mu=-1) - shown["mse"].isel(mu=least)).isel(size=-1)
        )
        both = rules.compare(source, "mse", 2e-3, 5.0)
        single = one["mse"].isel(size=0, sample=0).to_numpy()
        t = one["temperature"].to_numpy()
        window = (t >= 2e-3) & (t <= 5.0)
        at = t[window][np.argmin(single[window])]
        clear = float(gain) > rules.SIGMAS * float(error)
        rows.append(
            Row(
                f"MSE least at T > 0, noise variance {source.attrs['sigma_xi2']:g}",
                "claimed, no figure",
                f"least {float(best['mse']):.4f} at T = {float(best['temperature']):.3g}; "
                f"{float(line['mse'][0]):.4f} at T = 0.002{doubt}",
                f"least {float(mean[least]):.4f} at T = {float(shown['temperature'][least]):.3g}, "
                f"by {pm(float(gain), float(error))} below T = 0.002; one run at N = "
                f"{int(one['size'][0])}: at T = {at:.2g}. " + rules.describe(source, *both),
                "agrees: colder is worse" if clear else "not clear with these samples",
                "agrees" if clear else "partly",
            )
        )
    return rows


def seeded(data: Data) -> list[Row]:
    """What the seeded dictionary gains."""
    rows = []
    totals = np.zeros((2, 2), dtype=int)
    for name, value in (("a", 0.62), ("b", 0.65)):
        iid, chain = data[f"seeded-iid-{name}"], data[f"seeded-chain-{name}"]
        for size in iid["size"].to_numpy():
            counts = found(iid, size=int(size)), found(chain, size=int(size))
            totals += np.array(counts)
            rows.append(_seeding(f"(.75, {value:g}, .5), N = {size}, τ = 10", *counts))
    iid_all, chain_all = ((int(good), int(n)) for good, n in totals)
    rows.append(_seeding("all of these together", iid_all, chain_all))
    return rows


def _seeding(where: str, iid: tuple[int, int], chain: tuple[int, int]) -> Row:
    p = _same_rate(iid, chain)
    more = chain[0] / max(chain[1], 1) > iid[0] / max(iid[1], 1)
    status: Status = "partly"
    verdict = f"no clear difference (p = {p:.2g})"
    if p <= 0.05:
        verdict = f"{'it helps' if more else 'it harms'} (p = {p:.1g})"
        status = "new" if more else "differs"
    measured = f"plan found: i.i.d. {_of(iid)}, seeded {_of(chain)}"
    return Row(f"seeding, {where}", "a good candidate", "–", measured, verdict, status)


def _same_rate(a: tuple[int, int], b: tuple[int, int]) -> float:
    """Fisher's exact test of two success rates."""
    from scipy.stats import fisher_exact

    return float(fisher_exact([[a[0], a[1] - a[0]], [b[0], b[1] - b[0]]]).pvalue)
