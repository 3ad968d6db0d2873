"""Examples in docstrings run, and public names have docstrings."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import l0anneal

MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(l0anneal.__path__, "l0anneal.")
    if not name.endswith("__main__")
]

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_the_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.S | re.M)
    assert blocks
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_links_of_a_page_lead_somewhere(page):
    text = (ROOT / page).read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("#"):
            assert link[1:] in anchors, link
        elif "://" not in link:
            assert ((ROOT / page).parent / link).exists(), link


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0


@pytest.mark.parametrize("name", [*MODULES, "l0anneal"])
def test_public_names_have_docstrings(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for public in getattr(module, "__all__", []):
        thing = getattr(module, public)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            assert inspect.getdoc(thing), f"{name}.{public}"


def test_parameters_in_the_docstring_are_those_of_the_function():
    for thing in (
        l0anneal.anneal,
        l0anneal.problem.ensembles.planted,
        l0anneal.population_anneal,
        l0anneal.temper,
        l0anneal.SparseProblem,
        l0anneal.AnnealedSubsetRegressor,
        l0anneal.subset_path,
        l0anneal.choose_size,
        l0anneal.sparse_encode,
        l0anneal.AnnealedSparseCoder,
    ):
        text = inspect.getdoc(thing)
        section = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
        documented = {
            name.strip()
            for line in section.splitlines()
            if line and not line.startswith(" ")
            for name in line.split(":")[0].split(",")
        }
        assert documented == set(inspect.signature(thing).parameters)
