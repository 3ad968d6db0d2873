"""The live annealing samples the law that it states, and says whether it found the planted columns."""

import json

import numpy as np
import pytest

import l0anneal
from helpers.reference import enumerate_supports, gibbs_law, qr_energy

pytestmark = pytest.mark.browser

SMALL = (0.5, 0.2, 0.2, 0.1)  # N = 20: 4845 supports of 4 columns
HARD = (0.75, 0.65, 0.5, 0.0)
SURE = 4.5  # standard errors; with 31 degrees of freedom a chance of 1e-4


def choose(page, size, seed):
    page.select_option("#size", str(size))
    page.fill("#seed", str(seed))
    page.dispatch_event("#seed", "change")


def exported(page):
    """Return the instance as the page writes it for Python."""
    page.locator("summary", has_text="Hold one temperature").click()
    page.click("#export")
    page.wait_for_function("document.querySelector('#instance').value")
    instance = json.loads(page.input_value("#instance"))
    return {key: np.array(value) for key, value in instance.items()}


def held(page, temperature, sweeps):
    """Return mean and standard error of ε at a fixed temperature, as the page measures them."""
    page.evaluate("L0.page.lastFixed = null")
    page.fill("#temperature", repr(temperature))
    page.fill("#sweeps", str(sweeps))
    page.click("#hold")
    page.wait_for_function("L0.page.lastFixed !== null")
    found = page.evaluate("L0.page.lastFixed")
    assert "the mean is ε =" in page.inner_text("#live-result")
    return found["mean"], found["error"]


def test_the_law_of_all_supports(open_page):
    """At three temperatures the mean energy is that of exp(−E/T) over all supports."""
    page = open_page(SMALL)
    choose(page, 20, 7)
    instance = exported(page)
    A, y, k = instance["A"], instance["y"], int(instance["n_nonzero"])
    _, energies = enumerate_supports(A, y, k)
    for temperature in (0.3, 0.1, 0.03):
        exact, other = (
            gibbs_law(energies, 1.0 / t) @ energies / len(y)
            for t in (temperature, 1.15 * temperature)
        )
        mean, error = held(page, temperature, 30_000)
        print(f"T={temperature}: page {mean:.6f}({error:.1g}), exact {exact:.6f}")
        assert abs(mean - exact) < SURE * error
        assert abs(mean - other) > SURE * error, "too few sweeps to tell the temperature"


def test_sixty_columns_agree_with_python(open_page):
    """The mean energies at three temperatures are those of chains of `anneal` on the same instance."""
    page = open_page(HARD)
    choose(page, 60, 3)
    instance = exported(page)
    problem = l0anneal.SparseProblem(instance["A"], instance["y"])
    temperatures = (0.5, 0.1, 0.02)
    mu = np.repeat([1.0 / t for t in temperatures], 2)  # at each: first settle, then measure
    schedule = l0anneal.Schedule.custom(mu, np.tile([200, 1000], 3))
    run = l0anneal.anneal(
        problem, int(instance["n_nonzero"]), schedule, n_chains=12, polish=False, random_state=0
    )
    chains = np.asarray(run.mean_energy)[:, 1::2] / len(instance["y"])
    for temperature, values in zip(temperatures, chains.T, strict=True):
        mean, error = held(page, temperature, 4000)
        python, spread = values.mean(), values.std(ddof=1) / np.sqrt(values.size)
        print(f"T={temperature}: page {mean:.3e}({error:.1g}), Python {python:.3e}({spread:.1g})")
        assert abs(mean - python) < SURE * np.hypot(error, spread)
        assert np.hypot(error, spread) < 0.05 * python


@pytest.mark.parametrize(
    ("problem", "seed", "verdict"), [((0.8, 0.4, 0.2, 0.0), 1, "found"), (HARD, 1, "trapped")]
)
def test_the_message_says_what_happened(open_page, problem, seed, verdict):
    page = open_page(problem)
    choose(page, 60, seed)
    instance = exported(page)
    planted = qr_energy(instance["A"], instance["y"], instance["planted"])
    assert planted < 1e-20, "the planted columns represent y"
    page.select_option("#tau", "5")
    page.click("#cool")
    page.wait_for_function("document.querySelector('#live-result').dataset.kind")
    result = page.locator("#live-result")
    assert result.get_attribute("data-kind") == verdict
    assert result.inner_text().lower().startswith(verdict)
    assert page.locator("#live-plot .mark.cooled").count() == 120
    page.click("#heat")
    page.wait_for_function("document.querySelectorAll('#live-plot .mark.heated').length === 120")
    page.wait_for_function("document.querySelector('#live-result').dataset.kind === 'end'")


def test_one_seed_gives_one_run(open_page):
    page = open_page(SMALL)
    choose(page, 20, 5)
    exported(page)
    first, again = held(page, 0.1, 640), held(page, 0.1, 640)
    assert first == again
    choose(page, 20, 6)
    assert held(page, 0.1, 640) != first


def test_a_run_can_be_stopped_and_impossible_sizes_are_refused(open_page):
    page = open_page(HARD)
    page.select_option("#tau", "100")
    page.click("#cool")
    page.wait_for_selector("#live-plot .mark.cooled")
    page.click("#stop")
    assert page.inner_text("#live-result") == "Stopped."
    marks = page.locator("#live-plot .mark.cooled")
    n = marks.count()
    assert 0 < n < 120
    page.wait_for_timeout(300)
    assert marks.count() == n
    page.fill("#rho", "0.74")
    page.wait_for_function("L0.page.problem.rho === 0.74")
    page.select_option("#size", "20")
    page.click("#cool")
    assert "cannot be annealed" in page.inner_text("#live-result")
    page.locator("summary", has_text="Hold one temperature").click()
    for name, value, words in (("sweeps", "10", "At least 320"), ("temperature", "0", "positive")):
        page.select_option("#size", "100")
        page.fill(f"#{name}", value)
        page.click("#hold")
        assert words in page.inner_text("#live-result")
