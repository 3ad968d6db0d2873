import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats

from l0anneal import EvidenceResult, SparseProblem, ensembles, evidence_anneal
from l0anneal.engine.moves import new_tally
from l0anneal.engine.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.engine.rng import stream
from l0anneal.engine.workspace import Workspace
from l0anneal.problem import scaled as problem_module
from l0anneal.samplers.evidence import posterior
from l0anneal.samplers.evidence.chain import Model
from l0anneal.samplers.evidence.conditional import Doubtful, Snapshot, moments_among, moments_of
from l0anneal.samplers.evidence.posterior import PosteriorChain
from l0anneal.samplers.evidence.prior import Prior
from l0anneal.samplers.evidence.proposal import Proposal
from l0anneal.samplers.evidence.slab import Hyperparameters
from l0anneal.samplers.run import Run


@pytest.mark.parametrize(("alpha", "rho_hat"), [(0.8, 0.2), (0.8, 0.5), (0.6, 0.3)])
def test_noiseless_plans_are_found_without_being_told_anything(alpha, rho_hat):
    found = 0
    for seed in range(5):
        instance = ensembles.planted(200, alpha, rho_hat, support="fixed", random_state=seed)
        result = evidence_anneal(instance.problem, max_messages=0, random_state=seed, n_draws=10)
        recovered = instance.mse(result.coef) < 1e-6
        assert (result.state == "found") == recovered  # success shows itself
        found += recovered
    assert found >= 4


@pytest.fixture(scope="module")
def noisy():
    instance = ensembles.planted(200, 0.6, 0.05, sigma_xi2=1e-3, support="fixed", random_state=4)
    return instance, evidence_anneal(instance.problem, random_state=0)


def test_noise_is_inferred(noisy):
    instance, result = noisy
    assert result.state == "noise"
    # relative standard error of a variance from M − k residuals
    error = np.sqrt(2 / (instance.y.size - instance.support.size))
    assert result.noise_variance == pytest.approx(1e-3, rel=4 * error)
    strong = np.flatnonzero(np.abs(instance.truth) > 0.4)
    assert set(strong) <= set(result.support.tolist())
    assert np.all(result.inclusion_probability[strong] > 0.9)


def test_posterior_is_consistent(noisy):
    instance, result = noisy
    p = result.inclusion_probability
    assert p.min() >= 0
    assert p.max() <= 1
    assert result.size_posterior.sum() == pytest.approx(1)
    mean_size = np.arange(result.size_posterior.size) @ result.size_posterior
    assert p.sum() == pytest.approx(mean_size, abs=1.0)
    assert instance.mse(result.averaged_coef) < 2 * instance.mse(result.coef)
    x, energy = instance.problem.least_squares(result.support)
    np.testing.assert_array_equal(result.coef[result.support], x)
    assert result.energy == energy
    inside = np.abs(result.averaged_coef - instance.truth) < 4 * result.coef_std + 1e-3
    assert inside.mean() > 0.97


def test_one_of_a_group_of_like_columns_is_chosen():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100, 60))
    A[:, 1:4] = A[:, :1] + 0.03 * rng.standard_normal((100, 3))  # four that no data can tell apart
    y = A[:, 0] + A[:, 30] + rng.standard_normal(100)
    result = evidence_anneal(SparseProblem(A, y), random_state=0)
    assert result.inclusion_probability[:4].max() < 0.5
    assert result.inclusion_probability[:4].sum() > 0.9
    assert np.sum(result.support < 4) == 1
    assert 30 in result.support


def test_pure_noise_has_no_columns():
    instance = ensembles.noise_only(200, 0.5, random_state=0)
    result = evidence_anneal(instance.problem, random_state=0)
    assert result.support.size <= 2
    assert result.noise_variance == pytest.approx(1.0, rel=0.4)


def test_known_noise_prior_and_size():
    instance = ensembles.planted(100, 0.6, 0.05, sigma_xi2=1e-3, support="fixed", random_state=4)
    result = evidence_anneal(instance.problem, noise_variance=1e-3, rho=0.05, random_state=0)
    assert result.noise_variance == pytest.approx(1e-3, rel=1e-9)
    assert result.rho == 0.05
    fixed = evidence_anneal(instance.problem, 5, random_state=0)
    assert fixed.support.size == 5
    assert fixed.inclusion_probability.sum() == pytest.approx(5)
    strong = np.flatnonzero(np.abs(instance.truth) > 0.4)
    assert strong.size >= 1
    assert set(strong) <= set(fixed.support.tolist())


def test_scale_and_seed_and_files(noisy, tmp_path):
    instance, result = noisy
    again = evidence_anneal(instance.problem, random_state=0)
    np.testing.assert_array_equal(again.inclusion_probability, result.inclusion_probability)
    scaled = evidence_anneal(SparseProblem(4.0 * instance.A, 0.5 * instance.y), random_state=0)
    np.testing.assert_array_equal(scaled.support, result.support)
    np.testing.assert_allclose(scaled.averaged_coef, result.averaged_coef / 8, rtol=1e-9)
    assert scaled.noise_variance == pytest.approx(result.noise_variance / 4)
    result.save(tmp_path / "r.npz")
    loaded = EvidenceResult.load(tmp_path / "r.npz")
    for name in result.__dataclass_fields__:
        if name != "draw_arrays":
            np.testing.assert_array_equal(getattr(loaded, name), getattr(result, name))
    for name, array in result.draw_arrays.items():
        np.testing.assert_array_equal(getattr(loaded.draws, name), array)
    assert loaded.trajectory.identical(result.trajectory)
    assert "noise" in loaded.summary()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_nonzero": 999}, "between 0 and N"),
        ({"rho": 1.5}, "probability"),
        ({"rho": (1.0, -1.0)}, "Beta law"),
        ({"noise_variance": -1.0}, "noise_variance"),
        ({"tau": 0}, "tau"),
        ({"n_draws": 1.5}, "n_draws"),
    ],
)
def test_bad_arguments(noisy, arguments, message):
    with pytest.raises(ValueError, match=message):
        evidence_anneal(noisy[0].problem, **arguments)


@pytest.fixture(params=["two humps", "one hump"])
def settled(request):
    """A chain in the middle of sampling."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 12))
    problem = SparseProblem(A, A[:, :4] @ [1.0, -1.0, 1.0, 1.0] + rng.standard_normal(40))
    model = Model(problem, None, Prior.of(problem, 0.3))
    chain = PosteriorChain(Run(random_state=0), model, "empty", SeedSequence(0))
    chain.workspace.fill(4, np.arange(12))
    c = 0.8 if request.param == "two humps" else 0.0
    chain.hyper = Hyperparameters(0.01, 10.0, c, np.ones(4))
    chain.temperature = 0.01
    chain.set_slab(chain.hyper.variance, chain.hyper.hump, np.ones(4))
    chain.half = 0.0 if c else 20.0
    return chain


def test_probabilities_and_moments_given_the_other_columns(settled):
    """Against the Gaussian model itself, both signs of a column in turn.

    With one hump, T is integrated out.
    """
    chain, T, v, m = settled, 0.01, settled.slab, settled.hump
    problem = chain.problem
    A = problem.A / problem.column_norms
    y = problem.y / np.sqrt(problem.unit_energy)

    def log_density(columns, signs):
        covariance = T * np.eye(40) + v * A[:, columns] @ A[:, columns].T
        if m:
            return stats.multivariate_normal(m * A[:, columns] @ signs, covariance).logpdf(y)
        square = y @ np.linalg.solve(covariance, y)
        return -0.5 * np.linalg.slogdet(covariance)[1] - 20.0 * np.log(square)

    for _ in range(3):
        chain._sweeps(1).all()
        p, mean, square = moments_of(chain, [Snapshot.of(chain)])[0]
        for j in range(12):
            others = [i for i in chain.workspace.support if i != j]
            signs = chain.signs[others]
            logs, means, squares = [], [], []
            for sign in (-1.0, 1.0):
                both, columns = np.append(signs, sign), [*others, j]
                logs.append(log_density(columns, both))
                inverse = np.linalg.inv(A[:, columns].T @ A[:, columns] + T / v * np.eye(len(both)))
                x = inverse @ (A[:, columns].T @ y + T / v * m * both)
                means.append(x[-1])
                noise = T
                if not m:  # the mean of T given the columns
                    covariance = np.eye(40) + v / T * A[:, columns] @ A[:, columns].T
                    noise = (y @ np.linalg.solve(covariance, y)) / 38.0
                squares.append(x[-1] ** 2 + noise * inverse[-1, -1])
            weights = np.exp(logs - np.max(logs)) / np.sum(np.exp(logs - np.max(logs)))
            odds = 0.3 / 0.7 * 0.5 * np.sum(np.exp(logs - log_density(others, signs)))
            assert p[j] == pytest.approx(odds / (1.0 + odds), abs=1e-9)
            assert mean[j] == pytest.approx(weights @ means, abs=1e-9)
            assert square[j] == pytest.approx(weights @ squares, abs=1e-9)


@pytest.mark.parametrize("completed", [(), (1, 3, 4)])
def test_moments_of_several_draws_together_are_those_of_each(monkeypatch, completed):
    """Where the Gram matrix is not whole, the rows of several draws are computed in one pass.

    Draws after which the tableau was completed need none.
    """
    monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 90))
    problem = SparseProblem(A, A[:, :4] @ [1.0, -1.0, 1.0, 1.0] + rng.standard_normal(40))
    model = Model(problem, None, Prior.of(problem, None))
    chain = PosteriorChain(Run(random_state=0), model, "dense", SeedSequence(0))
    waiting, expected = [], []
    for i in range(5):
        chain._step()
        stale = Snapshot.of(chain)
        chain.workspace.complete()  # computes the distances and correlations in the tableau
        waiting.append(Snapshot.of(chain) if i in completed else stale)
        expected += moments_of(chain, [Snapshot.of(chain)])
    assert len({tuple(snapshot.inside) for snapshot in waiting}) == 5
    assert [i for i, snapshot in enumerate(waiting) if snapshot.inverse is None] == [*completed]
    for found, moments in zip(moments_of(chain, waiting), expected, strict=True):
        np.testing.assert_allclose(found, moments, rtol=1e-8, atol=1e-10)


def test_moments_of_some_columns_are_those_of_a_look_at_all(monkeypatch):
    """Some of the columns inside are among them, and some are not."""
    monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 90))
    problem = SparseProblem(A, A[:, :4] @ [1.0, -1.0, 1.0, 1.0] + rng.standard_normal(40))
    model = Model(problem, None, Prior.of(problem, None))
    chain = PosteriorChain(Run(random_state=0), model, "dense", SeedSequence(0))
    columns = np.arange(0, 90, 2)
    chain.look_at(Doubtful(columns, problem.unit_columns[columns]))
    for i in range(6):
        chain._step()
        if i % 2:
            chain.workspace.complete()  # computes the distances and correlations in the tableau
        snapshot = Snapshot.of(chain)
        assert (snapshot.inverse is None) == i % 2
        inside = snapshot.inside
        assert 0 < np.isin(inside, columns).sum() < inside.size
        p, mean, square = moments_among(chain, snapshot, chain.doubtful)
        expected = moments_of(chain, [snapshot])[0]
        np.testing.assert_allclose(p, expected[0][columns], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(mean, expected[1][inside], rtol=1e-8)
        np.testing.assert_allclose(square, expected[2][inside], rtol=1e-8)


def test_columns_are_averaged_over_the_looks_at_them(monkeypatch):
    """Doubtful columns are looked at more often; the other averages are of fewer looks."""
    monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    monkeypatch.setattr(posterior, "DOUBTFUL", 20)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 90))
    problem = SparseProblem(A, A[:, :4] @ [1.0, -1.0, 0.5, 0.4] + rng.standard_normal(40))
    kept = []
    monkeypatch.setattr(posterior.Posterior, "propose_doubtful", _kept(kept))
    result = evidence_anneal(problem, n_draws=4000, random_state=0)
    chain = kept[0].chains[0]
    looks = chain.rounds[-1].looks
    doubtful = np.isin(np.arange(90), chain.doubtful.columns)
    assert doubtful.sum() == 20
    assert np.ptp(looks[doubtful]) == np.ptp(looks[~doubtful]) == 0.0
    assert looks[doubtful][0] == 2000 // posterior.DOUBTFUL_DRAWS
    assert looks[doubtful][0] > 5 * looks[~doubtful][0]
    monkeypatch.undo()
    expected = evidence_anneal(SparseProblem(A, problem.y), n_draws=4000, random_state=1)
    error = result.inclusion_probability - expected.inclusion_probability
    assert np.abs(error[doubtful]).max() < 0.05
    assert np.abs(error[~doubtful]).max() < 0.05


def _kept(kept):
    original = posterior.Posterior.propose_doubtful

    def propose_doubtful(self):
        kept.append(self)
        original(self)

    return propose_doubtful


def test_the_burn_in_among_many_columns_proposes_those_that_are_missing():
    """In the 800 proposals of a step, a uniform law would propose one of 4000 columns seldom."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 4000))
    problem = SparseProblem(A, A[:, :3] @ [4.0, -4.0, 4.0] + rng.standard_normal(60))
    model = Model(problem, None, Prior.of(problem, None))
    for seed in range(3):
        chain = PosteriorChain(Run(random_state=0), model, "empty", SeedSequence(seed))
        for _ in range(4):
            chain._look()
            chain._step()
        assert {0, 1, 2} <= set(chain.workspace.support.tolist())


def test_no_column_is_likely_to_join_where_there_is_no_room(settled):
    settled.largest = settled.n_inside
    p, _, _ = moments_of(settled, [Snapshot.of(settled)])[0]
    assert np.count_nonzero(p) == settled.n_inside


def test_a_new_ridge_after_a_direct_kernel_needs_no_rows(monkeypatch):
    """Where the Gram matrix is not whole, the support's rows are not there then."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((40, 80)), rng.standard_normal(40)
    direct = Workspace(SparseProblem(A, y), 40)
    monkeypatch.setattr(problem_module, "WHOLE_GRAM_BYTES", 0)
    by_rows = Workspace(SparseProblem(A, y), 40)
    for workspace in (direct, by_rows):
        workspace.set_ridge(0.1)
        prior = (np.full(31, -1.0), np.zeros(80), *Proposal.of(np.ones(80)))
        law = (10.0, workspace.problem.unit_signal, 0.0, np.log(0.1), *prior, 0.0, np.zeros(80))
        state = stream(SeedSequence(0))
        workspace.run(evidence_flip_direct, state, *law, 30, 2000, new_tally())
        workspace.set_ridge(0.2)
    assert np.any(by_rows.tableau.row_of[by_rows.support] < 0)
    for workspace in (direct, by_rows):
        workspace.complete()
    np.testing.assert_array_equal(direct.support, by_rows.support)
    for name in ("x", "r", "gamma"):
        expected, found = (getattr(w.tableau, name) for w in (direct, by_rows))
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_averaged_coefficients_of_equal_columns_add_up():
    """Draws have one of the columns or both, which must not add to the error of the sum."""
    rng = np.random.default_rng(2)
    A = rng.standard_normal((60, 8))
    A[:, 1] = A[:, 0]
    y = 35.0 * A[:, 0] + 2.0 * A[:, 3] + 0.5 * rng.standard_normal(60)
    result = evidence_anneal(SparseProblem(A, y), random_state=2)
    assert np.all(result.inclusion_probability[:2] < 0.9)
    expected, deviation = np.linalg.lstsq(A[:, [0, 3]], y)[0][0], 0.5 / np.sqrt(60)
    assert result.averaged_coef[:2].sum() == pytest.approx(expected, abs=2 * deviation)


@pytest.mark.parametrize("seed", range(4))
def test_of_two_equal_columns_one_is_chosen(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, 12))
    A = np.column_stack((A, A[:, 1]))
    y = A[:, :3] @ [0.5, -1.0, 1.0] + 0.3 * rng.standard_normal(30)
    support = evidence_anneal(SparseProblem(A, y), random_state=seed).support
    assert np.linalg.matrix_rank(A[:, support]) == support.size
    assert np.isin([1, 12], support).sum() == 1


@pytest.mark.parametrize("offset", [1e2, 1e5, 1e7])
def test_a_dominant_column_hides_nothing(offset):
    """A constant column and a signal with a large offset: the answer of the centred problem."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 30))
    y = A[:, [3, 7]] @ [1.0, -1.0] + rng.standard_normal(80)
    centred = SparseProblem(A - A.mean(axis=0), y - y.mean())
    expected = evidence_anneal(centred, random_state=0)
    problem = SparseProblem(np.column_stack((A, np.ones(80))), y + offset)
    result = evidence_anneal(problem, random_state=0)
    assert result.state == expected.state == "noise"
    np.testing.assert_array_equal(result.support, [*expected.support, 30])
    p = result.inclusion_probability
    assert p[30] == 1.0
    np.testing.assert_allclose(p[:30], expected.inclusion_probability, atol=0.1)
    assert result.noise_variance == pytest.approx(expected.noise_variance, rel=0.1)
    assert result.averaged_coef[30] == pytest.approx(offset, abs=0.5)
    assert result.draws.probability_of_any(np.array([30])) == pytest.approx(1.0)
    assert [30] in [found.columns.tolist() for found in result.credible_sets()]


def test_columns_always_included():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 30))
    y = A[:, [3, 7]] @ [1.0, -1.0] + rng.standard_normal(80)
    problem = SparseProblem(A, y)
    result = evidence_anneal(problem, always_include=[0, 3], random_state=0)
    np.testing.assert_array_equal(result.support, [0, 3, 7])
    np.testing.assert_array_equal(result.inclusion_probability[[0, 3]], 1.0)
    x, _ = problem.least_squares([0, 3, 7])
    np.testing.assert_allclose(result.averaged_coef[[0, 3]], x[:2], atol=0.1)
    # the standard error of a least-squares coefficient
    error = np.sqrt(result.noise_variance * np.diag(np.linalg.inv(A[:, [0, 3]].T @ A[:, [0, 3]])))
    np.testing.assert_allclose(result.coef_std[[0, 3]], error, rtol=0.2)
    fixed = evidence_anneal(problem, 3, always_include=[0], random_state=0)
    assert fixed.support.size == 3
    assert 0 in fixed.support
    with pytest.raises(ValueError, match="n_nonzero counts"):
        evidence_anneal(problem, 1, always_include=[0, 3])
    gram = SparseProblem.from_gram(A.T @ A, A.T @ y, y @ y, 80)
    with pytest.raises(ValueError, match="Gram"):
        evidence_anneal(gram, always_include=[0])


def test_zero_columns_are_never_chosen_and_change_nothing():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 20))
    y = A[:, 3] + rng.standard_normal(60)
    alone = evidence_anneal(SparseProblem(A, y), random_state=0)
    more = evidence_anneal(
        SparseProblem(np.column_stack((A, np.zeros((60, 200)))), y), random_state=0
    )
    assert np.all(more.inclusion_probability[20:] == 0)
    sizes = [np.arange(r.size_posterior.size) @ r.size_posterior for r in (alone, more)]
    assert sizes[0] == pytest.approx(sizes[1], abs=0.3)
    only = evidence_anneal(
        SparseProblem(np.column_stack((A, np.zeros((60, 1)))), 0 * y), random_state=0
    )
    assert only.support.size == 0


def test_a_known_noise_variance_is_kept():
    """Also if it exceeds what the signal shows."""
    rng = np.random.default_rng(0)
    problem = SparseProblem(rng.standard_normal((40, 20)), rng.standard_normal(40))
    for noise in (1.0, 50.0):
        result = evidence_anneal(problem, noise_variance=noise, random_state=0)
        assert result.noise_variance == pytest.approx(noise)


def test_of_duplicates_one_is_returned_at_fixed_size():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 12))
    A[:, 5] = A[:, 2]
    y = 3 * A[:, 2] + A[:, 8] + 0.3 * rng.standard_normal(40)
    support = evidence_anneal(SparseProblem(A, y), 2, random_state=0).support.tolist()
    assert support in ([2, 8], [5, 8])


@pytest.mark.slow
def test_noise_does_not_vanish_where_columns_abound():
    """Any signal of 30 samples can be represented by 15 of 3000 columns, nearly."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 3000))
    for seed in range(2):
        result = evidence_anneal(SparseProblem(A, rng.standard_normal(30)), random_state=seed)
        assert result.state == "noise"
        assert result.support.size == 0
        assert result.noise_variance > 0.3


def test_too_few_draws_are_no_basis_for_sets(noisy):
    result = evidence_anneal(noisy[0].problem, n_draws=50, random_state=1)
    with pytest.raises(ValueError, match="larger n_draws"):
        result.credible_sets()
    with pytest.raises(ValueError, match="coverage"):
        result.credible_sets(coverage=1.5)
