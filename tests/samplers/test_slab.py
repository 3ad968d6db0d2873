import numpy as np
import pytest

from l0anneal import SparseProblem, evidence_anneal
from l0anneal.problem.admissibility import PIVOT
from l0anneal.samplers.evidence.prior import Prior
from l0anneal.samplers.evidence.proposal import Proposal
from l0anneal.samplers.evidence.slab import SupportModel


@pytest.mark.parametrize("known", [None, 0.7])
def test_evidence_of_a_support_straight_from_the_model(known):
    """Differences of log evidence between supports; T is summed over on a fine grid."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((9, 4))
    A /= np.linalg.norm(A, axis=0)
    y = 3.0 * A[:, 0] + rng.standard_normal(9)
    prior = Prior.of(SparseProblem(A, y))
    log_T = np.linspace(-8.0, 6.0, 400) if known is None else np.log([known])
    logs, found = [], []
    for S in ([], [0], [1, 2], [0, 1, 2, 3]):
        total = 0.0
        for g, log_g in zip(prior.scales, prior.log_scale):
            C = np.eye(9) + g * A[:, S] @ A[:, S].T
            square, log_det = y @ np.linalg.solve(C, y), np.linalg.slogdet(C)[1]
            densities = np.exp(-0.5 * (square / np.exp(log_T) + 9 * log_T + log_det))
            total += np.exp(log_g) * densities.sum()
        logs.append(np.log(total))
        B = A[:, S]
        model = SupportModel(B.T @ B, B.T @ y, y @ y, 9, prior, known)
        found.append(model.log_evidence())
    np.testing.assert_allclose(np.diff(found), np.diff(logs), atol=1e-4)


def test_coefficients_of_one_size_show_two_humps():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((200, 40))
    y = A[:, :12] @ rng.choice([-1.0, 1.0], 12) + 0.5 * rng.standard_normal(200)
    result = evidence_anneal(SparseProblem(A, y), random_state=0)
    assert result.draws.weight @ (result.draws.hump > 0) > 0.9
    y = A[:, :12] @ np.geomspace(0.1, 3.0, 12) + 0.5 * rng.standard_normal(200)
    result = evidence_anneal(SparseProblem(A, y), random_state=0)
    assert result.draws.weight @ (result.draws.hump > 0) < 0.5


def test_proposals_are_drawn_from_their_law():
    weights = np.random.default_rng(0).gamma(0.5, size=30)
    table = Proposal.of(weights)
    law = table.share / 30
    np.add.at(law, table.alias, (1.0 - table.share) / 30)
    np.testing.assert_allclose(law, weights / weights.sum(), rtol=1e-12)
    np.testing.assert_allclose(np.exp(table.log_share), law, rtol=1e-12)


def density_of_both_humps(shapes, x, noise):
    """Return the log density of coefficients under each shape, straight from the definition."""
    m, v = np.sqrt(shapes.c * shapes.g * noise), (1.0 - shapes.c) * shapes.g * noise
    each = [
        np.logaddexp(-((x - s) ** 2) / (2 * w), -((x + s) ** 2) / (2 * w)) for s, w in zip(m, v)
    ]
    return np.array([np.sum(e - np.log(2.0) - 0.5 * np.log(w)) for e, w in zip(each, v)])


@pytest.mark.parametrize("noise", [0.02, 1.0, 30.0])
@pytest.mark.parametrize("x", [[], [1.2], [1.0, -1.1, 0.9, 0.0], [40.0, -1.0, 1e-3]])
def test_the_law_of_the_slab_is_the_density_of_both_humps(x, noise):
    x = np.array(x)
    prior = Prior.of(SparseProblem(np.eye(9, 5), np.ones(9)))
    model = SupportModel(np.eye(x.size), x, 9.0, 9, prior)
    expected = prior.shapes.log_weight + density_of_both_humps(prior.shapes, x, noise)
    found = model._slab_law(np.abs(x), noise)
    left_out = np.isinf(found)
    np.testing.assert_allclose(found[~left_out], expected[~left_out], atol=1e-9, rtol=1e-12)
    assert np.all(expected[left_out] < expected.max() - 40.0)
    assert x.size < 3 or left_out.any()


@pytest.mark.parametrize("slab", ["learned", "two humps"])
def test_shapes_are_not_left_out_because_of_inadmissible_ones(slab):
    """With two equal columns, small ridges are inadmissible; they would be the most probable ones."""
    gram, x, noise = np.eye(6), np.array([1.0, 1.02, -0.98, 1.0, -1.0, 1.01]), 1e-11
    gram[0, 1] = gram[1, 0] = 1.0
    prior = Prior.of(SparseProblem(np.eye(40, 20), np.ones(40)), None, slab)
    model = SupportModel(gram, gram @ x, float(x @ gram @ x) + 40 * noise, 40, prior)
    ridge = prior.shapes.ridge
    inverses = [np.linalg.inv(gram + r * np.eye(6)).diagonal().max() for r in ridge]
    admissible = np.array(inverses) * PIVOT * (1.0 + ridge) < 1.0
    assert 0 < admissible.sum() < ridge.size
    density = prior.shapes.log_weight + density_of_both_humps(prior.shapes, x, noise)
    expected = np.exp(np.where(admissible, density, -np.inf) - density[admissible].max())
    found = model._slab_law(np.abs(x), noise)
    law = np.exp(found - found.max())
    np.testing.assert_allclose(law / law.sum(), expected / expected.sum(), atol=1e-9)


def test_a_prior_of_the_slab_adds_up_to_one():
    problem = SparseProblem(np.eye(9, 5), np.ones(9))
    for slab, humps in {"learned": 0.1, "one hump": 0.0, "two humps": 1.0}.items():
        shapes = Prior.of(problem, None, slab).shapes
        weights = np.exp(shapes.log_weight)
        assert weights.sum() == pytest.approx(1.0)
        assert weights[shapes.humps].sum() == pytest.approx(humps)
        assert np.all(shapes.c[shapes.humps] > 0.0)
