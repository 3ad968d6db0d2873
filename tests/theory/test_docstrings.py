"""Public names of the theory document all their parameters and show an example.

The examples themselves run in ``tests/test_docs.py``.
"""

import dataclasses
import doctest
import inspect
import re

import pytest

from l0anneal import theory

MODULES = (theory, theory.bayes, theory.condensation, theory.l1, theory.rsb)
PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if not inspect.ismodule(getattr(module, name))
}
METHODS = {
    f"{path}.{name}": method
    for path, thing in PUBLIC.items()
    if inspect.isclass(thing)
    for name, method in inspect.getmembers(thing, inspect.isfunction)
    if not name.startswith("_")
}


def documented(thing, title):
    """Return the names in one section of a numpydoc docstring, in order."""
    text = inspect.getdoc(thing)
    found = re.search(
        rf"^{title}\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE
    )
    if found is None:
        return []
    heads = [line for line in found[1].splitlines() if line and not line.startswith(" ")]
    return [name.strip() for head in heads for name in head.split(" : ")[0].split(",")]


def parameters(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


def test_all_lists_are_checked():
    assert len(PUBLIC) == 29
    assert len(METHODS) == 8


@pytest.mark.parametrize("name", [*PUBLIC, *METHODS])
def test_every_parameter_is_documented(name):
    thing = PUBLIC.get(name) or METHODS[name]
    if dataclasses.is_dataclass(thing):
        fields = [field.name for field in dataclasses.fields(thing)]
        assert fields
        assert documented(thing, "Parameters") + documented(thing, "Attributes") == fields
    elif inspect.isclass(thing):
        assert issubclass(thing, Exception)
    else:
        assert documented(thing, "Parameters") == parameters(thing)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_docstring_has_an_example(name):
    assert doctest.DocTestParser().get_examples(inspect.getdoc(PUBLIC[name]))


def test_a_missing_parameter_is_noticed():
    def function(first, second):
        """Do nothing.

        Parameters
        ----------
        first : int
            Documented.

        Returns
        -------
        int
        """

    assert documented(function, "Parameters") == ["first"]
    assert documented(function, "Returns") == ["int"]
    assert documented(function, "Parameters") != parameters(function)
