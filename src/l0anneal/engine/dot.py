"""The inner product of the kernels, with a fixed order of summation.

A compiler that may reorder sums (``fastmath``) chooses an order that depends on what it inlines. A
kernel that has just been compiled and the same kernel loaded from the cache can then differ in the last
digit. The kernels are therefore compiled without ``fastmath``, and the one sum that dominates their
running time is written here in vector instructions: 16 partial sums, added in a fixed order. The result
has the same bits on every machine.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["dot"]

_LANES = 4
_WIDE = 4  # independent vector sums, which hide the latency of an addition
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, _LANES)


def _dot(typingctx: Any, x: Any, y: Any) -> Any:
    """Inner product of two contiguous float64 vectors; ``y`` is at least as long as ``x``."""
    for array in (x, y):
        if not (
            isinstance(array, types.Array)
            and array.ndim == 1
            and array.layout == "C"
            and array.dtype == types.float64
        ):
            return None
    return types.float64(x, y), _generate


dot: Any = intrinsic(_dot)


def _generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Generate three loops over the elements: 16 at a time, then 4 at a time, then one at a time."""
    first, second = (
        context.make_array(array)(context, builder, value)
        for array, value in zip(signature.args, args, strict=True)
    )
    n = builder.extract_value(first.shape, 0)
    index = n.type
    sums = [cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, None)) for _ in range(_WIDE)]

    def product(at: Any) -> Any:
        """Multiply the four pairs of elements that start at position ``at``."""
        parts = []
        for array in (first, second):
            where = builder.bitcast(builder.gep(array.data, [at]), _VECTOR.as_pointer())
            loaded = builder.load(where)
            loaded.align = 8
            parts.append(loaded)
        return builder.fmul(*parts)

    def constant(value: int) -> Any:
        return ir.Constant(index, value)

    def accumulate(slot: Any, value: Any) -> None:
        builder.store(builder.fadd(builder.load(slot), value), slot)

    n_wide = builder.and_(n, constant(-_LANES * _WIDE))
    n_vector = builder.and_(n, constant(-_LANES))
    with cgutils.for_range_slice(builder, constant(0), n_wide, constant(_LANES * _WIDE)) as (at, _):
        for i, slot in enumerate(sums):
            accumulate(slot, product(builder.add(at, constant(i * _LANES))))
    with cgutils.for_range_slice(builder, n_wide, n_vector, constant(_LANES)) as (at, _):
        accumulate(sums[0], product(at))

    a, b, c, d = (builder.load(slot) for slot in sums)
    total = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
    a, b, c, d = (
        builder.extract_element(total, ir.Constant(ir.IntType(32), i)) for i in range(_LANES)
    )
    result = cgutils.alloca_once_value(
        builder, builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
    )
    with cgutils.for_range_slice(builder, n_vector, n, constant(1)) as (at, _):
        left, right = (builder.load(builder.gep(array.data, [at])) for array in (first, second))
        accumulate(result, builder.fmul(left, right))
    return builder.load(result)
