"""The phase diagram, the numbers of the paper and of docs/theory.md, and the figures."""

import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from helpers.theory_reference import NUMBERS
from l0anneal.theory import (
    ReplicaSymmetric,
    bayes,
    l1,
    metastability,
    paper_numbers,
    phase_diagram,
    plot_curves,
    plot_phase_diagram,
)

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def diagram():
    return phase_diagram(np.linspace(0.0, 1.0, 11))


def test_recovery_limits(diagram):
    assert diagram.rho_hat.size == 11
    middle = diagram.sel(rho_hat=0.5)
    assert float(middle.alpha_l0) == 0.5
    assert float(middle.alpha_l1) == l1.reconstruction_limit(0.5)
    assert float(middle.alpha_bayes) == bayes.amp_threshold(0.5)
    inner = diagram.isel(rho_hat=slice(1, -1))
    assert (inner.alpha_l0 < inner.alpha_bayes).all()
    assert (inner.alpha_bayes < inner.alpha_l1).all()
    for name in ("alpha_l0", "alpha_bayes", "alpha_l1"):
        assert (np.diff(diagram[name]) > 0.0).all()


def test_metastability_agrees_with_reference_and_full_curve():
    limits = metastability(0.75, 0.5)
    at = "alpha .75, rho_hat .5"
    assert limits.onset == pytest.approx(NUMBERS[f"coexistence onset rho, {at}"], abs=6e-6)
    assert limits.onset_temperature == pytest.approx(
        NUMBERS[f"coexistence onset T, {at}"], abs=6e-7
    )
    assert limits.trapped == pytest.approx(NUMBERS[f"cooled branch reaches T=0, {at}"], abs=6e-6)
    assert f"{limits.onset:.5f} and {limits.trapped:.5f}" in PAGE
    # The full curve changes on the two sides of each limit.
    assert ReplicaSymmetric(0.75, limits.onset - 1e-3, 0.5).spinodals().planted is None
    above = ReplicaSymmetric(0.75, limits.onset + 1e-3, 0.5).spinodals()
    assert above.cooling == pytest.approx(limits.onset_temperature, rel=0.05)
    assert ReplicaSymmetric(0.75, limits.trapped - 1e-4, 0.5).spinodals().cooling is not None
    assert ReplicaSymmetric(0.75, limits.trapped + 1e-4, 0.5).spinodals().cooling is None


def test_below_the_bayes_threshold_every_rho_has_a_metastable_state():
    limits = metastability(0.6, 0.5)
    assert limits.onset == limits.rho_hat == limits.trapped == 0.5
    assert ReplicaSymmetric(0.6, 0.52, 0.5).spinodals().planted is not None


@pytest.mark.parametrize("pair", [(0.5, 0.5), (0.5, 0.6), (0.5, 0.0), (1.2, 0.5)])
def test_metastability_needs_rho_hat_below_alpha(pair):
    with pytest.raises(ValueError, match="must satisfy 0 < rho_hat < alpha <= 1"):
        metastability(*pair)


def test_the_papers_numbers():
    rows = {row.quantity.split(" (")[0]: row for row in paper_numbers()}
    assert len(rows) == 7
    agreeing = {name for name, row in rows.items() if row.agrees}
    assert agreeing == {"ε of l1", "ε of l1 + least squares", "α_c of l1", "T_c"}
    for name, row in rows.items():
        # Even where the digits differ the numbers are close: 1.5 % for ε_0, 20 % for the freezing.
        assert row.ours == pytest.approx(row.paper, rel=0.25), name
        assert row.agrees or row.note, name
    floor = rows["achievable limit ε_0"]
    assert floor.ours == pytest.approx(0.00905209, abs=6e-9)
    assert "0.012007" in floor.note
    assert rows["T_c"].ours == pytest.approx(2.941312e-4, rel=5e-7)


def test_the_values_in_the_documented_example():
    block = re.search(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]
    setup, *lines = block.replace("\n\n", "\n").splitlines()
    names = {}
    exec(setup, names)
    n_compared = 0
    for line in lines:
        code, _, comment = line.partition("  # ")
        if not comment:
            exec(code, names)
            continue
        value, text = eval(code, names), comment.split(":")[0]
        if re.fullmatch(r"[\d.]+(e-\d+)?", text):
            digits = len(text.split("e")[0].replace(".", "").lstrip("0"))
            assert f"{value:.{digits - 1}e}" == f"{float(text):.{digits - 1}e}", line
            n_compared += 1
        else:
            assert comment == f"an xarray.{type(value).__name__}"
    assert n_compared == 6


def test_the_documentation_has_the_numbers_of_the_paper():
    table = PAGE[PAGE.index("## 10.") :].replace("e-0", "e-")
    for row in paper_numbers():
        forms = [f"{row.ours:{form}}".replace("e-0", "e-") for form in (".6g", ".7g", ".6e")]
        assert any(f"| {form} |" in table for form in forms), row.quantity
        assert f"| {row.printed} " in table


def test_the_achievable_limit_of_the_paper_is_on_our_curve():
    """Where ε = 0.00919 the entropy is still positive."""
    theory = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1.0)
    state = theory.at(0.029780)
    assert state.distortion == pytest.approx(0.00919, abs=1e-6)
    assert state.entropy == pytest.approx(0.00233, abs=1e-5)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_curves_with_a_transition():
    theory = ReplicaSymmetric(0.75, 0.65, 0.5)
    axs = plot_curves(theory, temperatures=(1e-5, 1.0))
    assert labels(axs[0]) == ["equilibrium", "cooled", "planted", "unstable", "transition T_c"]
    assert all(ax.get_ylabel() for ax in axs)
    assert axs[2].get_xlabel() == "temperature T = 1/μ"
    # The equilibrium line has a gap at T_c, where ε jumps.
    line = axs[1].get_lines()[0]
    gap = np.flatnonzero(np.isnan(line.get_ydata()))
    assert gap.size == 1
    left, right = line.get_xdata()[gap[0] - 1], line.get_xdata()[gap[0] + 1]
    assert left < theory.transition().temperature < right


def test_curves_without_a_signal_on_the_callers_axes():
    theory = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1.0)
    _, grid = plt.subplots(1, 4)
    axs = plot_curves(theory, grid)
    assert axs == list(grid)
    assert "ground state, 1RSB" in labels(axs[0])
    assert "RS unstable to the left" in labels(axs[0])
    assert min(axs[2].get_lines()[0].get_ydata()) == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(ValueError, match="must be four matplotlib axes; got 2"):
        plot_curves(theory, grid[:2])


def test_phase_diagram_figure(diagram):
    _, ax = plt.subplots()
    assert plot_phase_diagram(ax, data=diagram, points=[(0.5, 0.75)]) is ax
    assert len(labels(ax)) == 4
    curve = ax.get_lines()[0]
    np.testing.assert_array_equal(curve.get_ydata(), diagram.alpha_l1)
