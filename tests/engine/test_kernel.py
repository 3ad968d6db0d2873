"""The decorators of kernels: the digest in the names of cached kernels, and Numba's private option."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

import l0anneal
from helpers.kernels import from_python
from l0anneal.engine import kernel as kernel_module
from l0anneal.engine.kernel import digest, has_nrt_option, kernel, loop, source_files
from l0anneal.engine.refresh import refresh

PACKAGE = Path(l0anneal.__file__).parent
ENGINE = PACKAGE / "engine"

needs_option = pytest.mark.skipif(not has_nrt_option(), reason="this Numba has no option _nrt")


def imports(path):
    """Yield the full names of the modules that a file imports, and of the names it takes from them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports in this package are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_digest_changes_with_every_file_of_the_engine(tmp_path):
    copies = []
    for i, path in enumerate(source_files()):
        copies.append(tmp_path / f"{i}.py")
        shutil.copy(path, copies[-1])
    before = digest(copies)
    assert before == digest(source_files())
    digests = {before}
    for copy in copies:
        original = copy.read_bytes()
        copy.write_bytes(original + b"# changed\n")
        digests.add(digest(copies))
        copy.write_bytes(original)
    assert len(digests) == 1 + len(copies)
    assert digest(copies) == before


def test_the_digest_covers_all_files_of_the_engine():
    covered = set(source_files())
    assert set(ENGINE.rglob("*.py")) < covered
    assert ENGINE / "moves" / "pair_flip.py" in covered
    assert PACKAGE / "problem" / "admissibility.py" in covered
    assert refresh.py_func.__qualname__ == f"refresh.{digest(source_files())}"


def test_all_kernels_are_in_the_engine():
    """Kernels elsewhere would not be recompiled when the engine changes under them."""
    users = [
        path
        for path in PACKAGE.rglob("*.py")
        if any(n.startswith(("numba", "l0anneal.engine.kernel.")) for n in imports(path))
    ]
    assert len(users) > 10
    assert all(path.is_relative_to(ENGINE) for path in users)


def test_kernels_depend_on_files_in_the_digest_only():
    covered = set(source_files())
    for path in ENGINE.rglob("*.py"):
        names = set(imports(path))
        if not any(name.startswith("l0anneal.engine.kernel.") for name in names):
            continue  # no kernels in this file
        for name in names:
            file = PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py")
            assert not file.exists() or file in covered, f"{path} imports {name}"


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


def small_kernel():
    """Return a loop in which Numba counts references, since it takes an array out of a tuple.

    It is a new function each time, because the decorators change its name.
    """

    def raise_rows(pair, total):
        for i in range(pair.second.size):
            row = pair.first[i]
            while row[0] < pair.second[i]:
                if row[1] > 100.0:
                    return False
                row[0] += 0.1
            total[i] = row[0] * row[1]
        return True

    return raise_rows


@pytest.fixture
def compile_afresh(monkeypatch):
    """Leave out the cache, so that the kernels of these tests are compiled in each run."""
    monkeypatch.setattr(
        kernel_module, "njit", lambda **options: numba.njit(**options | {"cache": False})
    )


def run(function):
    rng = np.random.default_rng(0)
    total = np.zeros(7)
    assert function(Pair(rng.standard_normal((7, 5)), rng.standard_normal(7)), total)
    assert total.all()
    return total


def counts_references(dispatcher):
    return any("NRT_incref" in text for text in dispatcher.inspect_llvm().values())


@needs_option
def test_loops_do_not_count_references(compile_afresh):
    counting, plain = kernel(small_kernel()), loop(small_kernel())
    np.testing.assert_array_equal(run(counting), run(plain))
    assert counting.targetoptions["_nrt"] is True
    assert plain.targetoptions["_nrt"] is False
    assert counts_references(counting)
    assert not counts_references(plain)


def test_a_numba_without_the_option_gives_the_same_numbers(compile_afresh, monkeypatch):
    expected = run(loop(small_kernel()))
    monkeypatch.setattr(kernel_module, "has_nrt_option", lambda: False)
    fallback = loop(small_kernel())
    np.testing.assert_array_equal(run(fallback), expected)
    np.testing.assert_array_equal(run(from_python(kernel_module.inlined(small_kernel()))), expected)
    assert "_nrt" not in fallback.targetoptions
    assert counts_references(fallback)


def test_the_option_is_looked_up_in_numba(monkeypatch):
    """Numba refuses options that it does not know, so a wrong answer would not go unnoticed."""

    class Target:
        options = type("Options", (), {})

    assert has_nrt_option() == hasattr(numba.core.cpu.CPUTargetOptions, "_nrt")
    monkeypatch.setattr(kernel_module, "cpu_target", Target)
    assert not has_nrt_option()
    with pytest.raises(KeyError, match="Unrecognized options"):
        run(numba.njit(_unknown=True)(small_kernel()))


CHAIN = """
import hashlib, sys
from l0anneal.engine import kernel
if sys.argv[1] == "without":
    kernel.has_nrt_option = lambda: False
from l0anneal import Schedule, anneal, ensembles
instance = ensembles.planted(60, 0.75, 0.4, random_state=3)
result = anneal(instance.problem, 30, Schedule.paper(n=30), polish=False, random_state=5)
from l0anneal.engine.moves.pair_flip import pair_flip
assert ("_nrt" in pair_flip.targetoptions) == (sys.argv[1] == "with")
print(hashlib.sha256(result.mean_energy.tobytes() + result.coef.tobytes()).hexdigest())
"""


@pytest.mark.slow
@needs_option
def test_a_whole_chain_without_the_option_gives_the_same_bits(tmp_path):
    digests = [
        subprocess.run(
            [sys.executable, "-c", CHAIN, how],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / how)},
            capture_output=True,
            check=True,
        ).stdout
        for how in ("with", "without")
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) > 60


def test_an_inner_function_is_for_kernels_only(compile_afresh):
    inner = kernel_module.inner(small_kernel())
    with pytest.raises(TypeError, match="calls from kernels only"):
        run(inner)
    expected = run(kernel(small_kernel()))
    np.testing.assert_array_equal(run(from_python(inner)), expected)
    with pytest.raises(TypeError, match="calls from kernels only"):
        run(inner)  # also when it has been compiled


SEPARATE = """
import sys
import numpy as np
from numba import float64
from l0anneal.engine import kernel
if sys.argv[1] == "without":
    kernel.has_user_functions = lambda context: False

@kernel.separate(float64[::1])
def triple(x):
    for i in range(x.size):
        x[i] *= 3.0
    return x.size

@kernel.inner
def twice(x):
    return triple(x) + triple(x)

@kernel.kernel
def outer(x):
    return twice(x)

x = np.ones(4)
assert outer(x) == 8 and (x == 9.0).all()
y = np.ones(4, dtype=np.float32)
assert triple(y) == 4 and (y == 3.0).all()
print(sum(outer.stats.cache_hits.values()), sum(triple.stats.cache_hits.values()))
"""


@pytest.mark.parametrize("option", ["with", "without"])
def test_a_separate_function_is_found_by_kernels_from_the_cache(option, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SEPARATE, encoding="utf-8")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    hits = [
        subprocess.run(
            [sys.executable, script, option],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for _ in range(2)
    ]
    # called by its address, the function itself is loaded as well, besides its other signature
    assert hits == [["0", "0"], ["1", "2" if option == "with" else "1"]]


LOADED = """
import math, sys
import numpy as np
from l0anneal.engine import kernel
if sys.argv[1] == "without":
    kernel.has_light_cache = lambda cache: False

@kernel.kernel
def doubled(x):
    y = np.empty(x.size)
    for i in range(x.size):
        y[i] = 2.0 * math.exp(x[i])
    return y

@kernel.kernel
def trebled(x):
    return doubled(x).sum() * 1.5

assert (doubled(np.zeros(5)) == 2.0).all()
print(sum(doubled.stats.cache_hits.values()), "numba.np.linalg" in sys.modules)
assert trebled(np.zeros(5)) == 15.0  # compiled, after a kernel that was loaded
"""


@pytest.mark.parametrize("option", ["with", "without"])
def test_a_kernel_is_loaded_without_what_a_compiler_needs(option, tmp_path):
    """The first process compiles; the second loads one kernel and has to compile another."""
    script = tmp_path / "script.py"
    script.write_text(LOADED, encoding="utf-8")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run_script():
        command = [sys.executable, script, option]
        options = {"check": True, "capture_output": True, "text": True}
        return subprocess.run(command, env=environment, **options).stdout.split()

    assert run_script() == ["0", "True"]
    for index in (tmp_path / "cache").rglob("*trebled*.nbi"):
        index.unlink()
    assert run_script() == ["1", "False" if option == "with" else "True"]
