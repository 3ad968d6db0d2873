"""The rules of the verdicts, tried on data from the claim and on data that violate it."""

import numpy as np
import pytest
from scipy import stats

from l0anneal.reproduction.estimate import Estimate
from l0anneal.reproduction.rule_rates import CASES, rate
from l0anneal.reproduction.rules import (
    LEVEL,
    Verdict,
    bracket,
    decide,
    holm,
    larger,
    more_often,
    more_often_paired,
    more_often_together,
    not_less_often,
    rate_above,
    same_number,
    too_few,
    within,
)

N_TRIALS = 300
# three standard deviations of the rate above the level
ALLOWED = LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / N_TRIALS)


@pytest.mark.parametrize("name", CASES)
def test_the_rate_of_agreement_at_the_margin_is_at_most_the_level(name):
    assert rate(name, "margin", 100, N_TRIALS) <= ALLOWED


@pytest.mark.parametrize("name", CASES)
def test_a_hundred_samples_show_a_true_claim_and_refute_a_false_one(name):
    assert rate(name, "claim", 100, 40) >= 0.75
    assert rate(name, "violation", 100, 40) == 0
    assert rate(name, "violation", 100, 40, "differs") >= 0.75


def test_the_check_of_rates_can_fail():
    """A rule that compares the mean with its margin, and no error, agrees half of the time."""
    rng = np.random.default_rng(0)
    agrees = [abs(rng.normal(0.5, 1.0, 100).mean()) <= 0.5 for _ in range(N_TRIALS)]
    assert np.mean(agrees) > ALLOWED


def test_ten_samples_of_a_narrow_claim_are_too_few():
    values = np.random.default_rng(1).normal(1.0, 1.0, 10)
    assert decide([within(Estimate([values], [1]), 1.0, 0.1)])[0].status == "too few"
    assert decide([within(Estimate([values], [1]), 9.0, 0.1)])[0].status == "differs"
    assert decide([rate_above((10, 10), 0.9), too_few("nothing")])[0].status == "too few"
    assert decide([more_often_paired([True] * 4, [False] * 4)])[0].status == "too few"
    assert decide([more_often((2, 2), (0, 2))])[0].status == "too few"


def test_an_open_question_is_undecided():
    values = np.random.default_rng(1).normal(0.0, 1.0, 400) + 0.2
    estimate = Estimate([values], [1])
    assert decide([within(estimate, 0.0, float(estimate.mean[0]))])[0].status == "undecided"


def test_p_values_are_those_of_the_textbook():
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.3, 1.0, 200), rng.normal(0.0, 2.0, 100)
    # the larger of Student's p and the bootstrap's; for normal data they are nearly the same
    student = stats.ttest_1samp(a, 0.0, alternative="greater").pvalue
    assert student <= larger(Estimate([a], [1])).p <= 2 * student + 3e-3
    welch = stats.ttest_ind(a, b, equal_var=False, alternative="greater")
    mine = Estimate([a, b], [1, -1])
    assert mine.freedom[0] == pytest.approx(welch.df)
    assert mine.p_above(0.0)[0] == pytest.approx(welch.pvalue, abs=0.03)
    assert mine.p_above(0.0)[0] >= welch.pvalue
    x, y = rng.random(50) < 0.6, rng.random(50) < 0.4
    n, k = int((x != y).sum()), int((x & ~y).sum())
    mcnemar = stats.binomtest(k, n, alternative="greater").pvalue
    assert more_often_paired(x, y).p == pytest.approx(mcnemar)
    fisher = stats.fisher_exact([[19, 81], [6, 94]], alternative="greater").pvalue
    assert more_often((19, 100), (6, 100)).p == pytest.approx(fisher)
    exact = stats.binomtest(95, 100, 0.9, alternative="greater").pvalue
    assert rate_above((95, 100), 0.9).p == pytest.approx(exact)


def test_five_of_ten_against_five_of_eight_is_no_gain():
    """These counts, and 7 of 10 against 4 of 10, were once called a gain without a test."""
    assert decide([more_often((5, 8), (5, 10))])[0].status == "undecided"
    assert decide([more_often((7, 10), (4, 10))])[0].status == "undecided"


def test_one_lagging_run_in_a_hundred_does_not_agree():
    """Student's interval around 99 equal values and an outlier would be far too narrow below."""
    values = np.full(100, 1.0) + 1e-3 * np.random.default_rng(3).normal(size=100)
    assert decide([within(Estimate([values], [1]), 1.0, 0.05)])[0].status == "agrees"
    values[17] += 2.0
    assert decide([within(Estimate([values], [1]), 1.0, 0.05)])[0].status == "undecided"


def test_skewed_samples_get_a_larger_p_than_students_below_their_tail():
    """Few of many samples are in the tail, so that both mean and error may be too small."""
    x = -np.log(1 - (np.arange(100) + 0.5) / 100)
    estimate = Estimate([x], [1])
    bound = estimate.mean + 2.5 * estimate.error
    student = stats.ttest_1samp(x, bound[0], alternative="less").pvalue
    assert estimate.p_below(bound)[0] > 2 * student
    # above, Student's is the larger one
    other = stats.ttest_1samp(x, 0.7, alternative="greater").pvalue
    assert estimate.p_above(0.7)[0] >= other


def test_the_sign_of_a_deviation_counts():
    values = np.random.default_rng(4).normal(0.0, 1.0, 100)
    below, above = values - 2.0, values + 2.0
    assert [decide([larger(Estimate([v], [1]))])[0].status for v in (above, below)] == [
        "agrees",
        "differs",
    ]


def test_one_case_of_several_is_fishers_test():
    a, b = (30, 100), (17, 90)
    assert more_often_together([(a, b)]).p == pytest.approx(more_often(a, b).p, rel=1e-9)
    assert more_often_together([(b, a)]).p_against == pytest.approx(more_often(b, a).p_against)


def test_cases_together_are_compared_with_random_labels():
    """The law of the sum, by drawing which of the successes are the first's."""
    rng = np.random.default_rng(7)
    cases = [((12, 20), (7, 20)), ((5, 15), (2, 25))]
    drawn = sum(
        rng.hypergeometric(a[0] + b[0], a[1] + b[1] - a[0] - b[0], a[1], 20_000) for a, b in cases
    )
    p = np.mean(drawn >= 17)
    assert more_often_together(cases).p == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 20_000))


def test_samples_that_speak_against_a_claim_are_not_too_few():
    """One noisy point cannot pass, but another lies clearly outside of the margin."""
    rng = np.random.default_rng(8)
    values = np.column_stack((rng.normal(0.0, 8.0, 100), rng.normal(0.7, 1.0, 100)))
    others = [more_often((5, 10), (4, 10))] * 70
    verdict = within(Estimate([values], [1]), 0.0, 0.4)
    assert verdict.p_against < LEVEL < 70 * verdict.p_against
    assert decide([verdict, *others])[0].status == "undecided"
    assert decide([within(Estimate([values[:, :1]], [1]), 0.0, 0.4)])[0].status == "too few"


def test_one_point_of_ten_can_contradict_a_claim_on_a_long_page():
    """Ten times the least p of a resampling, times the other tests of the page, would not show it."""
    gains = np.random.default_rng(5).normal(0.5, 1.0, (100, 10))
    gains[:, 3] -= 2.0
    others = [more_often((5, 10), (4, 10))] * 70
    assert decide([larger(Estimate([gains], [1])), *others])[0].status == "differs"


def test_ten_points_without_a_gain_seldom_contradict_a_claim():
    rng = np.random.default_rng(6)
    verdicts = [larger(Estimate([rng.normal(size=(100, 10))], [1])) for _ in range(N_TRIALS)]
    assert sum(decide([v])[0].status == "differs" for v in verdicts) / N_TRIALS <= ALLOWED


def test_samples_that_coincide_are_compared_as_they_are():
    same = Estimate([np.full(10, 0.25)], [1])
    assert decide([within(same, 0.25, 1e-6)])[0].status == "agrees"
    assert decide([within(same, 0.26, 1e-3)])[0].status == "differs"


def test_two_samples_or_numbers_that_are_not_finite_are_refused():
    for values in ([1.0], [1.0, np.nan]):
        with pytest.raises(ValueError, match="two or more finite samples"):
            Estimate([values], [1])


def test_holm_is_holm():
    p = [0.001, 0.2, 0.012, 0.013]
    adjusted = holm(p)
    np.testing.assert_allclose(adjusted, [0.004, 0.2, 0.036, 0.036])
    assert holm([]).size == 0


def test_a_page_of_false_claims_has_a_tick_in_one_case_of_twenty():
    rng = np.random.default_rng(5)
    n_pages = 400
    wrong = 0
    for _ in range(n_pages):
        page = [Verdict("test", "", p, 1 - p) for p in rng.random(30)]
        wrong += any(decision.status == "agrees" for decision in decide(page))
    assert wrong / n_pages <= LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / n_pages)
    # without Holm's method nearly every page would have one
    assert 1 - (1 - LEVEL) ** 30 > 0.75


def test_numbers_that_do_not_fluctuate_do_not_count_for_holm():
    one = Verdict("test", "", 0.03, 1.0)
    exact = [same_number(1.0, 1.0, 0.1)] * 50
    assert decide([one, *exact])[0].status == "agrees"
    assert {decision.status for decision in decide(exact)} == {"agrees"}
    assert decide([same_number(0.0090521, 0.00919, 1e-5)])[0].status == "differs"


def test_a_bracket_needs_both_ends():
    good, bad = rate_above((99, 100), 0.5), rate_above((3, 100), 0.5)
    assert decide([bracket(good, good)])[0].status == "agrees"
    assert decide([bracket(good, bad)])[0].status == "differs"
    assert decide([bracket(bad, good)])[0].status == "differs"
    assert decide([bracket(good, rate_above((52, 100), 0.5))])[0].status == "undecided"


def test_a_smaller_rate_is_not_called_as_good():
    assert decide([not_less_often((60, 100), (90, 100), 0.1)])[0].status == "differs"
    assert decide([not_less_often((86, 100), (90, 100), 0.1)])[0].status == "undecided"
