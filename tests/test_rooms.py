"""The shape of the package: its rooms, its imports and its public names.

Which room may import which is checked by import-linter in ``make lint``. Here every module must lie in a
room of the map in CONTRIBUTING, and no module may reach for what another keeps to itself. Each check is
a function that lists what is wrong, so that a test can show that it finds something.
"""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import l0anneal

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "l0anneal"
MOST_MODULES_IN_ROOT = 10


def rooms_of(contributing):
    """Folders and modules that the table under "The map" names."""
    section = re.search(r"^## The map\n(.*?)(?=^## |\Z)", contributing, re.S | re.M).group(1)
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.M)
    return {room for cell in cells for room in re.findall(r"`([^`]+)`", cell)}


def modules_without_room(source, rooms):
    """Modules that are not on the map and lie in no folder that is."""
    modules = [path.relative_to(source) for path in sorted(source.rglob("*.py*"))]
    return [
        path.as_posix()
        for path in modules
        if path.suffix in (".py", ".pyi")
        and path.as_posix() not in rooms
        and (path.parent == Path() or f"{path.parent.as_posix()}/" not in rooms)
    ]


def rooms_that_do_not_exist(source, rooms):
    """Entries of the map that name no module and no folder with modules."""
    return [
        room
        for room in sorted(rooms)
        if not (
            any((source / room).glob("*.py")) if room.endswith("/") else (source / room).exists()
        )
    ]


def crowded(source):
    """Whether more modules lie in the package's root than a reader takes in at a glance."""
    return len(list(source.glob("*.py"))) > MOST_MODULES_IN_ROOT


def private_imports(source):
    """Uses of another module's private names, as "file: name"."""
    found = []
    for path in sorted(source.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        modules = set()  # names that stand for modules of the package
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.level or is_of(source.name, node.module)):
                for name in node.names:
                    if is_module(source.parent, f"{node.module or source.name}.{name.name}"):
                        modules.add(name.asname or name.name)
                    elif is_private(name.name):
                        found.append(f"{path.relative_to(source).as_posix()}: {name.name}")
            elif isinstance(node, ast.Import):
                modules |= {n.asname for n in node.names if n.asname and is_of(source.name, n.name)}
        found += [
            f"{path.relative_to(source).as_posix()}: {node.value.id}.{node.attr}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
            and is_private(node.attr)
        ]
    return found


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def is_of(package, module):
    return module.split(".")[0] == package


def is_module(folder, name):
    """Whether a dotted name is that of a module or a package in ``folder``."""
    path = folder.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


def imports_between_tests(tests):
    """Imports of one test module by another, as "file: module"."""
    found = []
    for path in sorted(tests.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                below = [f"{module}.{name.name}".lstrip(".") for name in node.names]
                imported = [module, *(m for m in below if is_module(tests, m))]
            else:
                continue
            found += [
                f"{path.relative_to(tests).as_posix()}: {module}"
                for module in imported
                if any(part.startswith(("test_", "conftest")) for part in module.split("."))
            ]
    return found


def test_every_module_lies_in_a_room_of_the_map():
    rooms = rooms_of((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert modules_without_room(SOURCE, rooms) == []
    assert rooms_that_do_not_exist(SOURCE, rooms) == []


def test_few_modules_lie_in_the_root():
    assert not crowded(SOURCE)


def test_no_module_uses_private_names_of_another():
    assert private_imports(SOURCE) == []


def test_test_modules_do_not_import_each_other():
    assert imports_between_tests(ROOT / "tests") == []


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_the_map_is_compared_with_the_folders(tmp_path):
    table = "| room | content |\n|---|---|\n| `a.py`, `b/` | `x` |\n| `c/` | - |\n"
    text = f"# Title\n\n## The map\n\n{table}\n## Words\n\n| `d/` | - |\n"
    rooms = rooms_of(text)
    assert rooms == {"a.py", "b/", "c/"}
    files = dict.fromkeys(
        ("a.py", "b/x.py", "b/deep/y.py", "stray.py", "stub.pyi", "data.json"), ""
    )
    write(tmp_path, files)
    assert modules_without_room(tmp_path, rooms) == ["b/deep/y.py", "stray.py", "stub.pyi"]
    assert rooms_that_do_not_exist(tmp_path, rooms) == ["c/"]


def test_a_crowded_root_is_found(tmp_path):
    write(tmp_path, {f"m{i}.py": "" for i in range(MOST_MODULES_IN_ROOT)})
    assert not crowded(tmp_path)
    write(tmp_path, {"one_more.py": ""})
    assert crowded(tmp_path)


def test_private_imports_are_found(tmp_path):
    package = write(
        tmp_path / "fake",
        {
            "_util/tools.py": "def _own(): return _own.__name__",
            "good.py": "from fake._util import tools as _t\nfrom numpy import _core\n_t.__name__",
            "name.py": "from fake._util.tools import _own",
            "relative.py": "from ._util.tools import public, _own as own\nfrom . import _util",
            "attribute.py": "from fake._util import tools\ntools._own()",
            "module.py": "import fake._util.tools as tools\ntools._own()",
        },
    )
    assert private_imports(package) == [
        "attribute.py: tools._own",
        "module.py: tools._own",
        "name.py: _own",
        "relative.py: _own",
    ]


def test_imports_between_tests_are_found(tmp_path):
    write(
        tmp_path,
        {
            "helpers/tools.py": "",
            "deep/test_a.py": "from helpers.tools import test_case_of",
            "test_b.py": "from deep.test_a import thing",
            "test_c.py": "import test_b",
            "test_d.py": "from deep import test_a",
            "test_e.py": "from conftest import fixture",
        },
    )
    assert imports_between_tests(tmp_path) == [
        "test_b.py: deep.test_a",
        "test_c.py: test_b",
        "test_d.py: deep.test_a",
        "test_e.py: conftest",
    ]


def import_graph(*arguments, path=""):
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "import_graph.py", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )


def test_the_import_graph_has_no_cycle():
    out = import_graph()
    assert out.returncode == 0, out.stderr
    assert re.search(r"^engine +\d+ modules  imports problem", out.stdout, re.M)
    assert out.stdout.endswith("rooms, no cycle\n")


CYCLES = {
    "of modules": {"a.py": "import fake.b", "b.py": "from fake import a"},
    "of rooms": {
        "a/x.py": "import fake.b.x",
        "b/y.py": "import fake.a.y",
        "a/y.py": "",
        "b/x.py": "",
    },
}


@pytest.mark.parametrize("kind", CYCLES)
def test_a_cycle_fails(kind, tmp_path):
    packages = dict.fromkeys(("__init__.py", "a/__init__.py", "b/__init__.py"), "")
    files = CYCLES[kind] if kind == "of modules" else {**packages, **CYCLES[kind]}
    write(tmp_path / "fake", {"__init__.py": "", **files})
    out = import_graph("fake", path=tmp_path)
    assert out.returncode == 1
    assert re.fullmatch(r"cycle: (\S+) <- (\S+) <- \1\n", out.stderr), out.stderr


def fresh(code):
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    return out.stdout.strip()


def test_importing_the_package_imports_no_library():
    libraries = ["numba", "numpy", "scipy", "sklearn", "xarray", "matplotlib"]
    loaded = f"print([name for name in {libraries} if name in sys.modules])"
    assert fresh(f"import sys, l0anneal; {loaded}") == "[]"
    assert fresh(f"import sys, l0anneal; l0anneal.anneal; {loaded}") != "[]"


def test_every_public_name_loads_without_the_extras():
    extras = ["h5netcdf", "h5py", "dask", "distributed", "skimage", "pywt", "skglm", "abess"]
    fresh(
        f"import sys; sys.modules.update(dict.fromkeys({extras}))\n"
        "import l0anneal, l0anneal.cli.app\n"
        "for name in l0anneal.__all__: getattr(l0anneal, name)"
    )


def test_public_names():
    assert {"anneal", "baselines", "ensembles", "solve", "theory"} <= set(l0anneal.__all__)
    assert len(l0anneal.__all__) == len(set(l0anneal.__all__))
    assert set(l0anneal.__all__) <= set(dir(l0anneal))
    with pytest.raises(AttributeError, match="no_such_name"):
        l0anneal.no_such_name  # noqa: B018


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (.*)$", citation, re.M).group(1) == project["version"]
    assert l0anneal.__version__ == project["version"]
