"""Decorators that compile kernels: cached on disk, and run without the GIL.

Kernels are compiled without ``fastmath``, so that the order of summation is fixed (see `vectors`).

Numba copies the code of a kernel into each kernel that calls it, directly or not, and compiles it there
again. The large functions that most moves need, such as the pivots, are therefore `separate`: compiled
once, and called by their address.
"""

import copy
import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba import njit
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from l0anneal.problem import admissibility

__all__ = [
    "allocating",
    "digest",
    "has_light_cache",
    "has_nrt_option",
    "has_user_functions",
    "inlined",
    "inner",
    "kernel",
    "loop",
    "separate",
    "source_files",
]


def source_files() -> list[Path]:
    """Return the files that decide what the kernels compute: the engine, and its tolerance."""
    return [*sorted(Path(__file__).parent.rglob("*.py")), Path(admissibility.__file__)]


def digest(paths: Iterable[Path]) -> str:
    """Return a short hash of the content of files, and of Numba's version."""
    content = b"".join(path.read_bytes() for path in paths)
    return hashlib.sha256(numba.__version__.encode() + content).hexdigest()[:12]


# Numba recompiles a cached kernel when its own file changes, but not when a kernel that it calls
# changes in another file. The name of each cache file therefore contains a digest of all of them. It
# contains Numba's version too, so that a file of another version is never taken for a new one.
_DIGEST = digest(source_files())


def has_nrt_option() -> bool:
    """Whether this version of Numba has the private option ``_nrt``."""
    return hasattr(cpu_target.options, "_nrt")


def has_user_functions(context: Any) -> bool:
    """Whether this version of Numba lets one say how kernels call a compiled function."""
    return all(hasattr(context, f"{verb}_user_function") for verb in ("insert", "remove"))


def has_light_cache(cache: Any) -> bool:
    """Whether this version of Numba lets one load a kernel without all that a compiler needs."""
    return all(
        hasattr(cache, f"_{name}") for name in ("guard_against_spurious_io_errors", "load_overload")
    )


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on its first call, or load it from the cache."""
    return _compile(function)


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call, without counting references (see `loop`).

    A call from Python must be able to unpack a tableau of nineteen arrays, and the code for that takes
    longer to compile than most of these functions. Without it, a call from Python is a `TypeError`.
    """
    return _compile(function, counts_references=False, no_cpython_wrapper=True)


def allocating(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call, and that creates arrays."""
    return _compile(function, no_cpython_wrapper=True)


def loop(function: Callable[..., Any]) -> Any:
    """Compile a loop over proposals, without counting references to arrays.

    Numba counts references whenever a kernel takes an array out of the tableau, and that takes longer
    than the rest of a proposal. A kernel that does not count references must not create an array,
    which Numba refuses, and must neither return an array or a view nor call a kernel that does. Views
    that stay inside are allowed.

    The count is switched off by Numba's private option ``_nrt``. Where Numba has no such option, the
    kernel counts references: the numbers are the same, and the loop is slower.
    """
    return _compile(function, counts_references=False)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile ``function`` into each kernel that calls it, without counting references (see `loop`).

    This is for functions that are called once per proposal, where passing the nineteen arrays of a
    tableau takes longer than using them.
    """
    return _compile(function, counts_references=False, forceinline=True, no_cpython_wrapper=True)


def separate(*argument_types: Any, allocates: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function once, so that kernels call it instead of containing a copy of it.

    The call takes some ten nanoseconds, so this is for functions that do much more, or are rarely
    called. Calls with other types of arguments than ``argument_types`` are compiled as for `kernel`, and
    so are all calls where Numba does not have the methods that this needs. A function that creates
    arrays must say so by ``allocates``; the others do not count references (see `loop`).
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = _compile(function, counts_references=allocates)
        if not has_user_functions(dispatcher.targetctx):
            return dispatcher
        compile_as_kernel = dispatcher.compile
        symbol = f"l0anneal.{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"

        def compile_separately(signature: Any) -> Any:
            known = len(dispatcher.overloads)
            entry_point = compile_as_kernel(signature)
            if len(dispatcher.overloads) > known and argument_types in dispatcher.overloads:
                compiled = dispatcher.overloads[argument_types]
                if compiled.entry_point is entry_point:
                    _call_by_address(dispatcher.targetctx, compiled, symbol)
            return entry_point

        dispatcher.compile = compile_separately
        dispatcher.argument_types = argument_types
        return dispatcher

    return decorate


def _call_by_address(context: Any, compiled: Any, symbol: str) -> None:
    """Let kernels that call the function ``compiled`` refer to it as ``symbol``.

    Numba's own name for the function differs from process to process, and could not be found by a
    kernel that is loaded from the cache.
    """
    address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    llvmlite.binding.add_symbol(symbol, address)
    description = copy.copy(compiled.fndesc)
    description.mangled_name = symbol
    context.remove_user_function(compiled.entry_point)
    context.insert_user_function(compiled.entry_point, description, ())


def _called(function: Callable[..., Any], seen: set[Any]) -> Iterator[Any]:
    """Yield the kernels that are called by ``function``, or by those that it calls."""
    for name in function.__code__.co_names:
        other = function.__globals__.get(name)
        if isinstance(other, Dispatcher) and other not in seen:
            seen.add(other)
            yield other
            yield from _called(other.py_func, seen)


def _load(cache: Any, signature: Any, context: Any) -> Any:
    """Load a kernel from the cache without what only a compiler needs.

    Numba would import everything that a kernel might call, which takes a fifth of a second in each
    process. Compiled code needs Numba's runtime only; Numba imports the rest when it compiles a kernel.
    """
    rtsys.initialize(context)
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(signature, context)


def _refuse(*arguments: Any, **named: Any) -> None:
    raise TypeError(
        "this function was compiled for calls from kernels only (see engine.kernel.inner)"
    )


def _compile(
    function: Callable[..., Any], *, counts_references: bool = True, **options: Any
) -> Any:
    function.__qualname__ += f".{_DIGEST}"
    if has_nrt_option():
        # set for every kernel, because a kernel without a value of its own takes its caller's
        options["_nrt"] = counts_references
    options["no_cfunc_wrapper"] = True
    dispatcher = njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    if "no_cpython_wrapper" in options:
        dispatcher._insert = lambda *_: None  # else Python would find it, and crash
        dispatcher._compile_for_args = _refuse
    if has_light_cache(dispatcher._cache):
        dispatcher._cache.load_overload = partial(_load, dispatcher._cache)
    compile_or_load = dispatcher.compile

    def compile_after_callees(signature: Any) -> Any:
        # The symbols of separate functions must be there before a kernel that refers to them is loaded.
        for other in _called(function, set()):
            if hasattr(other, "argument_types"):
                other.compile(other.argument_types)
        return compile_or_load(signature)

    dispatcher.compile = compile_after_callees
    return dispatcher
