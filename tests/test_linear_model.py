import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from l0anneal.linear_model import AnnealedSubsetRegressor


@parametrize_with_checks(
    [
        AnnealedSubsetRegressor(),
        AnnealedSubsetRegressor(1),
        AnnealedSubsetRegressor("ebic", alpha=0.1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
