"""The checks of the built site fail when they should, and the reference lists every public name."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import l0anneal

ROOT = Path(__file__).parents[1]


def loaded(path):
    """Import a script that is not part of a package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check_site = loaded(ROOT / "scripts" / "check_site.py")
repository_links = loaded(ROOT / "docs" / "_ext" / "repository_links.py")


def faults(tmp_path, body, **files):
    """What is wrong with a site of one page with this body and of other files."""
    (tmp_path / "index.html").write_text(f"<html><body id='here'>{body}</body></html>", "utf-8")
    for name, text in files.items():
        (tmp_path / name.replace("_", ".")).write_text(text, "utf-8")
    return [fault.partition(": ")[2] for fault in check_site.faults(tmp_path)[0]]


@pytest.mark.parametrize(
    "body",
    [
        '<a href="other.html#part">text</a>',
        '<a href="#here">text</a> <a href="">text</a>',
        '<a href="https://elsewhere.org/page">a link may lead out of the site</a>',
        '<script src="own.js"></script><img src="data:image/png;base64,AA">',
        '<a href="other.html?q=1#p%61rt">text</a>',
        '<link rel="canonical" href="https://elsewhere.org/">',
    ],
)
def test_a_site_without_faults_passes(tmp_path, body):
    assert faults(tmp_path, body, other_html='<p id="part">', own_js="", own_css="p {}") == []


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="gone.html">text</a>', "broken link: gone.html"),
        ('<a href="other.html#gone">text</a>', "no such anchor: other.html#gone"),
        ('<a href="#gone">text</a>', "no such anchor: #gone"),
        ('<img src="gone.png">', "missing file: gone.png"),
        ('<img srcset="own.js 1x, //cdn.org/a.png 2x">', "loaded from elsewhere: //cdn.org/a.png"),
        ('<script src="https://cdn.org/a.js">', "loaded from elsewhere: https://cdn.org/a.js"),
        (
            '<link rel="stylesheet" href="https://cdn.org/a.css">',
            "loaded from elsewhere: https://cdn.org/a.css",
        ),
        (
            "<style>@import url(https://cdn.org/font.css);</style>",
            "loaded from elsewhere: https://cdn.org/font.css",
        ),
    ],
)
def test_a_fault_is_found(tmp_path, body, fault):
    assert faults(tmp_path, body, other_html='<p id="part">', own_js="") == [fault]


def test_a_font_from_elsewhere_in_a_stylesheet_is_found(tmp_path):
    style = "@font-face { src: url('https://cdn.org/a.woff2') }"
    assert faults(tmp_path, "", own_css=style) == ["loaded from elsewhere: https://cdn.org/a.woff2"]


def test_an_empty_site_is_a_fault(tmp_path):
    assert len(check_site.faults(tmp_path)[0]) == 1


def public_names(module, prefix=""):
    """Names as users write them after ``l0anneal.``, such as ``theory.l1.lasso``."""
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.ismodule(thing):
            yield from public_names(thing, f"{prefix}{name}.")
        else:
            yield prefix + name


def listed_names(text):
    """Names in the lists of the reference's index."""
    return re.findall(r"^   (\w[\w.]*)$", text, re.M)


def test_the_reference_lists_every_public_name_once():
    listed = listed_names((ROOT / "docs" / "reference" / "index.rst").read_text("utf-8"))
    assert sorted(listed) == sorted(public_names(l0anneal))


def test_a_name_that_is_missing_in_the_reference_is_noticed():
    text = ".. autosummary::\n   :toctree: generated\n\n   solve\n   theory.l1.lasso\n\nText.\n"
    assert listed_names(text) == ["solve", "theory.l1.lasso"]
    assert {"solve", "theory.l1.lasso", "ensembles.planted"} <= set(public_names(l0anneal))


def see_also(thing):
    """Names in the section "See Also" of a docstring."""
    section = re.search(r"^See Also\n-+\n((?:\S.* : .*\n?)+)", inspect.getdoc(thing) or "", re.M)
    return re.findall(r"^(\S+) : ", section[1], re.M) if section else []


def found(name, module=l0anneal):
    """The public object with this name, as users write it."""
    for part in name.removeprefix("l0anneal.").split("."):
        module = getattr(module, part)
    return module


@pytest.mark.parametrize("name", list(public_names(l0anneal)))
def test_a_public_name_has_an_example_and_says_what_to_see_also(name):
    thing = found(name)
    assert ">>> " in inspect.getdoc(thing)
    assert see_also(thing)
    assert all(found(other) is not thing for other in see_also(thing))


@pytest.mark.parametrize(
    ("link", "source", "page", "expected"),
    [
        ("../examples/plot_ecg.py", "docs/guide.md", "docs/guide.md", "auto_examples/plot_ecg.rst"),
        ("theory.md#4-branches", "docs/guide.md", "docs/guide.md", "theory.md#4-branches"),
        (
            "../../src/l0anneal/solving.py",
            "docs/start/a.md",
            "docs/start/a.md",
            "../code/l0anneal/solving.py.rst",
        ),
        ("docs/guide.md", "CHANGELOG.md", "docs/project/changelog.md", "../guide.md"),
        ("CHANGELOG.md", "CONTRIBUTING.md", "docs/project/contributing.md", "changelog.md"),
        (
            "../explorer/index.html",
            "docs/start/a.md",
            "docs/start/a.md",
            "site:../explorer/index.html",
        ),
        ("https://docs.xarray.dev", "docs/guide.md", "docs/guide.md", "https://docs.xarray.dev"),
        ("#fit", "docs/guide.md", "docs/guide.md", "#fit"),
    ],
)
def test_a_link_in_the_repository_becomes_one_in_the_site(link, source, page, expected):
    assert repository_links.rewritten(f"[text]({link})", source, page) == f"[text]({expected})"


def test_links_of_a_copied_page_lead_to_built_pages():
    change = repository_links.with_built_pages
    assert change('<a href="../theory.md">') == '<a href="../theory.html">'
    assert change('<a href="../a/b.md#c">') == '<a href="../a/b.html#c">'
    for left in ('<a href="https://example.org/x.md">', "theory.md", '<a href="style.css">'):
        assert change(left) == left
