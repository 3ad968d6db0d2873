"""The inner loops of the kernels in vector instructions, with a fixed order of summation.

A compiler that may reorder sums (``fastmath``) chooses an order that depends on what it inlines. A
kernel that has just been compiled and the same kernel loaded from the cache can then differ in the last
digit. The kernels are therefore compiled without ``fastmath``, and the loops that dominate their running
time are written here in vectors of eight and four numbers, which the compiler divides where a processor
has shorter ones. Each product is added by a fused multiply-add, which rounds once. The results have the
same bits on every machine. Processors since about 2013 have the instruction; where it is missing, a
function of the C library takes its place, which is slow.

Some of the loops treat four rows of a matrix at once, so that each element of the vectors that all four
need is loaded once. Those of the inverse Gram matrix are in `inverse_vectors`. Vectors of eight
numbers add up the same partial sums as two vectors of four. `dot` and `largest` have vectors of four
only: their arguments have often just been written, in shorter pieces, and a processor waits if it has to
put a vector together from several of them.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from l0anneal.engine.kernel import inlined
from l0anneal.engine.vector_code import (
    DOUBLE,
    FOUR,
    INDEX,
    LANES,
    VECTOR,
    WIDE,
    VectorCode,
    are_numbers,
    are_vectors,
    is_matrix,
)

__all__ = [
    "dot",
    "dot_block",
    "dot_four",
    "dot_rows",
    "largest",
    "most_gained",
    "position_of",
    "subtract_block",
]


def _dot(typingctx: Any, x: Any, y: Any) -> Any:
    """Return the inner product of two vectors; ``y`` is at least as long as ``x``."""
    return (types.float64(x, y), _generate_dot) if are_vectors(x, y) else None


def _generate_dot(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    x, y = code.values
    return code.dots([x], y, code.size(x), 4, VECTOR)[0]


def _largest(typingctx: Any, x: Any, least: Any) -> Any:
    """Return the largest element of a vector, or ``least`` if that is larger; NaN is ignored."""
    if not (are_vectors(x) and are_numbers(least)):
        return None
    return types.float64(x, least), _generate_largest


def _generate_largest(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    x, least = code.values
    vectors = [cgutils.alloca_once_value(builder, code.spread(least, VECTOR)) for _ in range(4)]
    number = cgutils.alloca_once_value(builder, least)

    def wide(at: Any) -> None:
        for part, slot in enumerate(vectors):
            code.keep_larger(slot, code.load(x, code.after(at, part * LANES), VECTOR))

    end = code.loop(code.size(x), 4 * LANES, wide)
    for slot in vectors[1:]:
        code.keep_larger(vectors[0], builder.load(slot))
    for i in range(LANES):
        code.keep_larger(
            number, builder.extract_element(builder.load(vectors[0]), ir.Constant(INDEX, i))
        )
    code.loop(
        code.size(x), 1, lambda at: code.keep_larger(number, code.load(x, at, DOUBLE)), start=end
    )
    return builder.load(number)


def _dot_block(typingctx: Any, W: Any, l: Any, y: Any) -> Any:
    """Return the inner products of rows l, ..., l + 3 of a matrix with y."""
    if not (is_matrix(W) and are_vectors(y)):
        return None
    return FOUR(W, l, y), partial(_generate_dots_of_rows, n_sums=2, kind=WIDE)


def _dot_rows(typingctx: Any, W: Any, l: Any, y: Any) -> Any:
    """Return the inner products of rows l, ..., l + 3 of a matrix with y, to the same bits as `dot`."""
    if not (is_matrix(W) and are_vectors(y)):
        return None
    return FOUR(W, l, y), partial(_generate_dots_of_rows, n_sums=4, kind=VECTOR)


def _generate_dots_of_rows(
    context: Any, builder: Any, signature: Any, args: Any, n_sums: int, kind: Any
) -> Any:
    code = VectorCode(context, builder, signature, args)
    W, l, y = code.values
    return code.as_tuple(code.dots(code.rows(W, l), y, code.size(y), n_sums, kind))


def _dot_four(typingctx: Any, a: Any, b: Any, c: Any, d: Any, y: Any) -> Any:
    """Return the inner products of four rows with y; the rows are at least as long as ``y``."""
    return (FOUR(a, b, c, d, y), _generate_dot_four) if are_vectors(a, b, c, d, y) else None


def _generate_dot_four(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    *rows, y = code.values
    return code.as_tuple(code.dots(rows, y, code.size(y), 2, WIDE))


def _subtract_block(typingctx: Any, W: Any, l: Any, s: Any, x: Any, q: Any, y: Any) -> Any:
    """Subtract s_i x + q_i y from rows l + i = l, ..., l + 3 of a matrix; s and q are tuples."""
    if not (is_matrix(W) and are_vectors(x, y)) or s != FOUR or q != FOUR:
        return None
    return types.void(W, l, s, x, q, y), _generate_subtract_block


def _generate_subtract_block(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    W, l, s, x, q, y = code.values
    rows, n = code.rows(W, l), code.size(x)
    of_x, of_y = ([builder.fneg(number) for number in of] for of in (s, q))

    def subtract(kind: Any) -> Callable[[Any], list[Any]]:
        return code.changing(rows, of_x, of_y, x, y, kind)

    end = code.loop(n, 2 * LANES, subtract(WIDE))
    end = code.loop(n, LANES, subtract(VECTOR), start=end)
    code.loop(n, 1, subtract(DOUBLE), start=end)
    return context.get_dummy_value()


def _most_gained(
    typingctx: Any, w: Any, y: Any, freed: Any, margin: Any, gamma: Any, r: Any
) -> Any:
    """Return the largest (r + w_k y_k)² − (γ + w_k² freed_k) margin_k; NaN is ignored."""
    if not (are_vectors(w, y, freed, margin) and are_numbers(gamma, r)):
        return None
    return types.float64(w, y, freed, margin, gamma, r), _generate_most_gained


def _generate_most_gained(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    w, y, freed, margin, gamma, r = code.values
    n = code.size(w)
    least = ir.Constant(DOUBLE, -math.inf)
    wides = [cgutils.alloca_once_value(builder, code.spread(least, WIDE)) for _ in range(2)]

    def keep(at: Any, kind: Any, slot: Any) -> None:
        left = code.load(w, at, kind)
        numerator = code.add_product(left, code.load(y, at, kind), code.spread(r, kind))
        square = builder.fmul(left, left)
        distance = code.add_product(square, code.load(freed, at, kind), code.spread(gamma, kind))
        needed = builder.fneg(builder.fmul(distance, code.load(margin, at, kind)))
        code.keep_larger(slot, code.add_product(numerator, numerator, needed))

    def several(at: Any) -> None:
        for part, slot in enumerate(wides):
            keep(code.after(at, part * 2 * LANES), WIDE, slot)

    end = code.loop(n, 4 * LANES, several)
    end = code.loop(n, 2 * LANES, lambda at: keep(at, WIDE, wides[0]), start=end)
    code.keep_larger(wides[0], builder.load(wides[1]))
    number = cgutils.alloca_once_value(builder, least)
    for i in range(2 * LANES):
        code.keep_larger(
            number, builder.extract_element(builder.load(wides[0]), ir.Constant(INDEX, i))
        )
    code.loop(n, 1, lambda at: keep(at, DOUBLE, number), start=end)
    return builder.load(number)


dot: Any = intrinsic(_dot)
dot_block: Any = intrinsic(_dot_block)
dot_four: Any = intrinsic(_dot_four)
dot_rows: Any = intrinsic(_dot_rows)
largest: Any = intrinsic(_largest)
most_gained: Any = intrinsic(_most_gained)
subtract_block: Any = intrinsic(_subtract_block)


@inlined
def position_of(x, value):
    """Return the first position of a value that x has."""
    p = 0
    while x[p] != value:
        p += 1
    return p
