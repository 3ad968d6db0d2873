"""The largest element of a vector, in vector instructions, and where it is.

A compiler does not vectorise a search for a largest element unless it may reorder comparisons
(``fastmath``), which the kernels do not allow (see `dot`). The largest of some numbers does not depend
on the order in which they are compared, so here the order is chosen for speed: 16 at a time.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from l0anneal.engine.kernel import inlined

__all__ = ["largest", "position_of"]

_LANES = 4
_WIDE = 4  # independent vectors, which hide the latency of a comparison
_VECTOR = ir.VectorType(ir.DoubleType(), _LANES)


def _largest(typingctx: Any, x: Any) -> Any:
    """Largest element of a contiguous float64 vector, 0 if no element is positive; NaN is ignored."""
    if not (
        isinstance(x, types.Array) and x.ndim == 1 and x.layout == "C" and x.dtype == types.float64
    ):
        return None
    return types.float64(x), _generate


largest: Any = intrinsic(_largest)


def _generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Generate two loops over the elements: 16 at a time, then one at a time."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    n = builder.extract_value(array.shape, 0)
    index = n.type
    tops = [cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, None)) for _ in range(_WIDE)]

    def constant(value: int) -> Any:
        return ir.Constant(index, value)

    def larger(one: Any, other: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", one, other), one, other)

    n_wide = builder.and_(n, constant(-_LANES * _WIDE))
    with cgutils.for_range_slice(builder, constant(0), n_wide, constant(_LANES * _WIDE)) as (at, _):
        for i, top in enumerate(tops):
            place = builder.gep(array.data, [builder.add(at, constant(i * _LANES))])
            loaded = builder.load(builder.bitcast(place, _VECTOR.as_pointer()))
            loaded.align = 8
            builder.store(larger(loaded, builder.load(top)), top)

    a, b, c, d = (builder.load(top) for top in tops)
    whole = larger(larger(a, b), larger(c, d))
    a, b, c, d = (
        builder.extract_element(whole, ir.Constant(ir.IntType(32), i)) for i in range(_LANES)
    )
    result = cgutils.alloca_once_value(builder, larger(larger(a, b), larger(c, d)))
    with cgutils.for_range_slice(builder, n_wide, n, constant(1)) as (at, _):
        element = builder.load(builder.gep(array.data, [at]))
        builder.store(larger(element, builder.load(result)), result)
    return builder.load(result)


@inlined
def position_of(x, value):
    """Return the first position of a value that x has."""
    p = 0
    while x[p] != value:
        p += 1
    return p
