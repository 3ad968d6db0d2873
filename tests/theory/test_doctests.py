"""The examples in the docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import l0anneal.theory

MODULES = [m.name for m in pkgutil.iter_modules(l0anneal.theory.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"l0anneal.theory.{name}")
    assert doctest.testmod(module).failed == 0


def test_public_modules_have_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    counts = {
        name: sum(
            len(test.examples)
            for test in finder.find(importlib.import_module(f"l0anneal.theory.{name}"))
        )
        for name in ("replica", "l1", "bayes", "rsb", "phases", "paper")
    }
    assert min(counts.values()) >= 1, counts
