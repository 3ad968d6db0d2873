"""Tests of estimators compare fits and their interface; samplers' tests ask how precise they are."""

import pytest


@pytest.fixture(autouse=True)
def _few_draws(few_draws):
    """Let every test draw little."""
