"""Examples in docstrings and pages run and show the right values; public names are documented."""

import ast
import dataclasses
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import sys
import tokenize
import tomllib
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest

import l0anneal

ROOT = Path(__file__).parents[1]
PAGES = [  # pages with code
    "README.md",
    *(
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.md", "start/*.md", "howto/*.md")
        for path in sorted((ROOT / "docs").glob(pattern))
        if "```python" in path.read_text("utf-8")
    ),
]
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(l0anneal.__path__, "l0anneal.")
    if not name.endswith("__main__")
]


def public_objects(module):
    """Functions and classes of a module and of the modules that its ``__all__`` lists, by name."""
    own = [n for n, t in vars(module).items() if getattr(t, "__module__", "") == module.__name__]
    found = {}
    for name in getattr(module, "__all__", [n for n in own if not n.startswith("_")]):
        thing = getattr(module, name)
        if inspect.ismodule(thing):
            found |= public_objects(thing)
        elif callable(thing):
            found[f"{module.__name__}.{name}"] = thing
    return found


PUBLIC = public_objects(l0anneal)


# Values in comments. In a Python block of a page, the comment behind an expression may begin with the
# value of the expression, which is then compared. What follows a colon or a semicolon is free text.
#
#     choose_size(path, "cv")  # 4
#     found.state, found.support.size  # ("found", 100)
#     result.support  # array([  3,  50, 200])
#     model.inclusion_probability_[[0, 20]]  # .64 and .38: they share it
#     np.count_nonzero(codes, axis=1)  # 8 each
#
# A block that begins with the name of a file, such as "# experiment.py", is written to that file.
#
# A number with a point is compared to the digits shown; lists, tuples and arrays are compared element by
# element. A comment that begins like a value must be one; any other comment is free text.

LOOKS_LIKE_A_VALUE = re.compile(r"""[-+.]?\d|["'(\[{]|array\(|(True|False|None)\b""")


def shown_value(comment):
    """Source of the value at the beginning of a comment, and whether it is for "each"; or None."""
    text = comment.lstrip("# ").rstrip()
    if not LOOKS_LIKE_A_VALUE.match(text):
        return None
    for end in [*(match.start() for match in re.finditer(r"[:;](\s|$)", text)), len(text)]:
        each = text[:end].endswith(" each")
        source = re.sub(r"^(\S+) and (\S+)$", r"[\1, \2]", text[:end].removesuffix(" each"))
        source = re.sub(r"^array\((.*)\)$", r"\1", source)
        with suppress(SyntaxError, ValueError):
            ast.literal_eval(source)
            return source, each
    raise AssertionError(f"the comment begins like a value but cannot be read: {comment}")


def agrees(value, source, node=None):
    """Whether ``value`` is what the source, or a node of its syntax tree, shows."""
    node = node or ast.parse(source, mode="eval").body
    if isinstance(node, (ast.List, ast.Tuple)):
        values = list(value)
        return len(values) == len(node.elts) and all(
            agrees(v, source, n) for v, n in zip(values, node.elts)
        )
    shown = ast.literal_eval(node)
    if isinstance(shown, float):
        digits = Decimal(ast.get_source_segment(source, node)).as_tuple()
        return abs(value - shown) <= 0.5000001 * 10.0**digits.exponent
    return bool(value == shown)


def wrong_values(text, page="page"):
    """Run the Python blocks of a page one after the other; list the comments that show a wrong value.

    Returns the list and the number of comments that were compared.
    """
    names, wrong, n_compared = {}, [], 0
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M):
        code = block.group(1)
        if named := re.match(r"# (\w+\.py)\n", code):
            compile(code, named.group(1), "exec")
            Path(named.group(1)).write_text(code, "utf-8")
            continue
        first = text[: block.start(1)].count("\n")
        comments = {
            token.start[0]: token.string
            for token in tokenize.generate_tokens(io.StringIO(code).readline)
            if token.type == tokenize.COMMENT
        }
        for statement in ast.parse(code).body:
            ast.increment_lineno(statement, first)
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), page, "exec"), names)
                continue
            value = eval(compile(ast.Expression(statement.value), page, "eval"), names)
            shown = shown_value(comments.get(statement.end_lineno - first, ""))
            if shown is None:
                continue
            source, each = shown
            n_compared += 1
            values = list(value) if each else [value]
            if not (values and all(agrees(v, source) for v in values)):
                wrong.append(f"{page}, line {statement.end_lineno}: {source}, but it is {value!r}")
    return wrong, n_compared


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a new working directory, from which the modules that a page writes can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("folder")
def test_the_blocks_of_a_page_run_and_show_the_right_values(page, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    wrong, n_compared = wrong_values((ROOT / page).read_text("utf-8"), page)
    assert wrong == []
    assert n_compared > 0


def shown_as(code):
    return wrong_values(f"Text.\n\n```python\n{code}\n```\n")


@pytest.mark.parametrize(
    "code",
    [
        "1 + 1  # 2",
        "0.638  # .64",
        "0.0638  # 6.4e-2: a text",
        "-0.638, 2  # (-.64, 2)",
        "[0.638, 0.379]  # .64 and .38: together 1",
        "[8, 8]  # 8 each",
        "[[1, 2], [3, 4]]  # array([[1, 2], [3, 4]])",
        '"noise"  # "noise"',
        '{"a": 1}  # {"a": 1}; a text',
        "sum(\n    [1, 2],\n)  # 3",
        "None  # None",
    ],
)
def test_a_right_value_is_compared(code):
    assert shown_as(code) == ([], 1)


@pytest.mark.parametrize(
    "code",
    [
        "1 + 1  # 3",
        "0.638  # .63",
        "0.0638  # 6.3e-2: a text",
        "-0.638, 2  # (-.64, 3)",
        "[0.638, 0.379]  # .64 and .37: together 1",
        "[8, 9]  # 8 each",
        "[]  # 8 each",
        "[0, 1]  # [0]: too short",
        '"trapped"  # "noise"',
        "sum(\n    [1, 2],\n)  # 4",
        "0  # None",
    ],
)
def test_a_wrong_value_fails(code):
    wrong, n_compared = shown_as(f"x = 1\n{code}")
    assert n_compared == 1
    assert len(wrong) == 1
    assert wrong[0].startswith(f"page, line {5 + code.count(chr(10))}: ")


def test_free_text_is_not_compared():
    for comment in ("dense, least squares", "xarray: distortion", "sex, bmi and two more"):
        assert shown_as(f"1  # {comment}") == ([], 0)
    assert shown_as("x = 1  # 2 would be wrong, but this is no expression") == ([], 0)
    with pytest.raises(AssertionError, match="cannot be read"):
        shown_as("1  # 2 or three")


def test_a_block_with_the_name_of_a_file_is_written_there(folder):
    assert shown_as("# answer.py\nx = 1 / 0") == ([], 0)
    assert (folder / "answer.py").read_text("utf-8") == "# answer.py\nx = 1 / 0\n"
    with pytest.raises(SyntaxError):
        shown_as("# answer.py\nx = = 1")


def anchors(text):
    """Anchors that GitHub and MyST make from the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken_links(path):
    """Links of a Markdown file that lead to no file, or to no heading of a Markdown file."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
        name, _, anchor = link.partition("#")
        goal = path.parent / name if name else path
        if "://" in link or link == "explorer/index.html":  # the site is built without it as well
            continue
        if not goal.exists() or (anchor and anchor not in anchors(goal.read_text("utf-8"))):
            broken.append(link)
    return broken


LINKING = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


@pytest.mark.parametrize("path", LINKING, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(path):
    assert broken_links(path) == []


def test_broken_links_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# A title\n\n## Part 1\n\n```\n# no title\n```\n", "utf-8")
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n[a](other.md#part-1) [b](#page) [c](https://x.org/y#z)\n", "utf-8")
    assert broken_links(page) == []
    page.write_text("[a](gone.md) [b](other.md#no-title) [c](#gone) [d](other.md)\n", "utf-8")
    assert broken_links(page) == ["gone.md", "other.md#no-title", "#gone"]


def relative_links(text):
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


def test_links_of_the_readme_are_absolute_if_the_project_has_an_address():
    """A package index shows the README without the repository around it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    if project.get("urls"):
        assert relative_links((ROOT / "README.md").read_text("utf-8")) == []
    assert relative_links("[a](b.md) ![c](https://d.org/e.png)") == ["b.md"]


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


def documented(thing, section):
    """Names in a section of a numpydoc docstring; None if there is no such section."""
    parts = re.split(r"^(\w.*)\n-{3,}\n", inspect.getdoc(thing) or "", flags=re.M)
    if section not in parts[1::2]:
        return None
    lines = parts[parts.index(section) + 1].splitlines()
    heads = [line.split(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return [name.strip(" *") for head in heads for name in head.split(",")]


def undocumented(thing):
    """What is wrong with the parameters or attributes in a docstring; empty if nothing is.

    A function, or a class that users build, documents the parameters of its signature; where there are
    one or two, the text may name them. A class that users only receive, such as a result, may
    document attributes instead, which must exist.
    """
    parameters, attributes = documented(thing, "Parameters"), documented(thing, "Attributes")
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return ""
    if inspect.isclass(thing) and parameters is None and attributes is not None:
        known = {*dir(thing), *getattr(thing, "__dataclass_fields__", ())}
        unknown = [name for name in attributes if name not in known]
        return f"no such attributes: {unknown}" if unknown else ""
    expected = list(inspect.signature(thing).parameters)
    if parameters is None and len(expected) <= 2:
        parameters = [name for name in expected if f"``{name}``" in (inspect.getdoc(thing) or "")]
    if sorted(parameters or []) != sorted(expected):
        return f"documented {parameters}, signature {expected}"
    return ""


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_in_the_docstring_are_those_of_the_signature(name):
    assert undocumented(PUBLIC[name]) == ""


@pytest.mark.parametrize(
    "name",
    [
        f"{owner}.{name}"
        for owner, thing in PUBLIC.items()
        if inspect.isclass(thing)
        for name, method in vars(thing).items()
        if not name.startswith("_") and getattr(method, "__module__", "").startswith("l0anneal")
    ],
)
def test_methods_have_a_docstring_with_their_parameters(name):
    owner, _, method = name.rpartition(".")
    method = getattr(PUBLIC[owner], method)
    assert inspect.getdoc(method)
    if documented(method, "Parameters") is not None:
        expected = [p for p in inspect.signature(method).parameters if p != "self"]
        assert sorted(documented(method, "Parameters")) == sorted(expected)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, thing in PUBLIC.items()
        if not (inspect.isclass(thing) and documented(thing, "Parameters") is None)
    ],
)
def test_what_users_call_has_an_example(name):
    assert doctest.DocTestFinder(recurse=False).find(inspect.unwrap(PUBLIC[name]))[0].examples


def test_wrong_docstrings_are_found():
    def good(a, b, *rest):
        """Do it.

        Parameters
        ----------
        a, b : int
            Numbers.

        *rest : int
            More of them.

        Returns
        -------
        c : int
            Another.
        """

    def renamed(a, b, new):
        pass

    @dataclasses.dataclass
    class Result:
        """An answer.

        Attributes
        ----------
        value, gone : int
            Numbers.
        """

        value: int

    def short(first, second):
        """Add ``first`` to the other."""

    renamed.__doc__ = good.__doc__.replace("*rest", "old")
    assert undocumented(short) == "documented ['first'], signature ['first', 'second']"
    assert undocumented(good) == ""
    assert undocumented(renamed) == "documented ['a', 'b', 'old'], signature ['a', 'b', 'new']"
    assert undocumented(Result) == "no such attributes: ['gone']"
    Result.__doc__ = "An answer."
    assert undocumented(Result) == "documented [], signature ['value']"
