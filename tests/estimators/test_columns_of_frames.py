"""What the regressor says about tables that it cannot use."""

import numpy as np
import pandas as pd
import pytest

from l0anneal import AnnealedSubsetRegressor, diagnose
from l0anneal.estimators.columns import check_columns

ROWS = 12
NUMBERS = np.arange(ROWS) % 5


@pytest.mark.parametrize(
    "column",
    [
        ["f", "m"] * (ROWS // 2),
        pd.Categorical(["low", "high"] * (ROWS // 2)),
        pd.date_range("2026-01-01", periods=ROWS),
    ],
    ids=["text", "category", "dates"],
)
def test_columns_that_are_no_numbers_are_named(column):
    X = pd.DataFrame({"age": NUMBERS, "what": column})
    with pytest.raises(ValueError, match=r"not numbers: 'what'.*OneHotEncoder"):
        AnnealedSubsetRegressor(1).fit(X, np.arange(ROWS))


@pytest.mark.parametrize(
    "column",
    [NUMBERS, NUMBERS > 2, NUMBERS.astype(str), NUMBERS.astype(object), pd.array(NUMBERS, "Int64")],
    ids=["integers", "bools", "numeric text", "objects", "nullable"],
)
def test_columns_that_are_numbers_pass(column):
    check_columns(pd.DataFrame({"age": column}))


def test_names_that_occur_twice_are_named():
    X = pd.DataFrame(np.ones((3, 3)), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="more than once: 'a'"):
        AnnealedSubsetRegressor(1).fit(X, np.arange(3))


def test_a_path_is_not_diagnosed_but_the_way_is_shown():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    model = AnnealedSubsetRegressor("bic", random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"got SubsetPath.*n_chains=2"):
        diagnose(model.result_)
