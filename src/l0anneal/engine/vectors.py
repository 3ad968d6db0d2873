"""The inner loops of the kernels in vector instructions, with a fixed order of summation.

A compiler that may reorder sums (``fastmath``) chooses an order that depends on what it inlines. A
kernel that has just been compiled and the same kernel loaded from the cache can then differ in the last
digit. The kernels are therefore compiled without ``fastmath``, and the loops that dominate their running
time are written here in vectors of eight and four numbers, which the compiler divides where a processor
has shorter ones. Each product is added by a fused multiply-add, which rounds once. The results have the
same bits on every machine. Processors since about 2013 have the instruction; where it is missing, a
function of the C library takes its place, which is slow.

Some of the loops treat four rows of a matrix at once, so that each element of the vectors that all four
need is loaded once. Those of the inverse Gram matrix are in `inverse_vectors`, and those of a ranking,
in single precision, in `single_vectors`. Vectors of eight
numbers add up the same partial sums as two vectors of four. `dot` and `largest` have vectors of four
only: their arguments have often just been written, in shorter pieces, and a processor waits if it has to
put a vector together from several of them.
"""

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
    "gaining_rows",
    "largest",
    "position_of",
    "subtract_block",
    "subtract_block_and_dot",
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
    subtract, n, end = _subtraction(code, code.rows(W, l), s, x, q, y), code.size(x), None
    for kind, step in ((WIDE, 2 * LANES), (VECTOR, LANES), (DOUBLE, 1)):
        end = code.loop(n, step, subtract(kind), start=end)
    return context.get_dummy_value()


def _subtraction(
    code: VectorCode, rows: list[Any], s: list[Any], x: Any, q: list[Any], y: Any
) -> Callable[[Any], Callable[[Any], object]]:
    of_x, of_y = ([code.builder.fneg(number) for number in of] for of in (s, q))
    return lambda kind: code.changing(rows, of_x, of_y, x, y, kind)


def _subtract_block_and_dot(
    typingctx: Any, W: Any, l: Any, s: Any, x: Any, q: Any, y: Any, z: Any
) -> Any:
    """Do `subtract_block`, and return the inner products of the next four rows with z, as `dot_block`.

    These rows must exist, and x, y and z have the same length. A processor has more to do at once then
    than if it had to wait for four sums and then subtract.
    """
    if not (is_matrix(W) and are_vectors(x, y, z)) or s != FOUR or q != FOUR:
        return None
    return FOUR(W, l, s, x, q, y, z), _generate_subtract_block_and_dot


def _generate_subtract_block_and_dot(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    W, l, s, x, q, y, z = code.values
    subtract = _subtraction(code, code.rows(W, l), s, x, q, y)
    others = code.rows(W, code.after(l, LANES))
    return code.as_tuple(code.dots(others, z, code.size(z), 2, WIDE, subtract))


def _gaining_rows(
    typingctx: Any,
    W: Any,
    p: Any,
    y: Any,
    freed: Any,
    margin: Any,
    gamma: Any,
    r: Any,
    least: Any,
) -> Any:
    """Return in which of rows p, ..., p + 3 of a matrix there is an exchange that gains enough, as bits.

    Bit i is set if (r + w_k y_k)² − (γ + w_k² freed_k) margin_k is more than ``least`` for some k, with
    row w and the elements γ and r at p + i; NaN is not more.
    """
    if not (is_matrix(W) and are_vectors(y, freed, margin, gamma, r) and are_numbers(least)):
        return None
    return types.int64(W, p, y, freed, margin, gamma, r, least), _generate_gaining_rows


def _generate_gaining_rows(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    W, p, y, freed, margin, gamma, r, least = code.values
    rows = code.rows(W, p)
    numbers = [[code.load(of, code.after(p, i), DOUBLE) for i in range(LANES)] for of in (gamma, r)]
    kinds = (WIDE, VECTOR, DOUBLE)
    slots = {
        kind: [cgutils.alloca_once_value(builder, code.spread(least, kind)) for _ in rows]
        for kind in kinds
    }

    def body(kind: Any) -> Callable[[Any], None]:
        gammas, rs = ([code.spread(number, kind) for number in own] for own in numbers)

        def keep(at: Any) -> None:
            slope, free, needed = (code.load(of, at, kind) for of in (y, freed, margin))
            for left, own_gamma, own_r, slot in zip(
                code.load_all(rows, at, kind), gammas, rs, slots[kind], strict=True
            ):
                numerator = code.add_product(left, slope, own_r)
                distance = code.add_product(builder.fmul(left, left), free, own_gamma)
                short = builder.fneg(builder.fmul(distance, needed))
                code.keep_larger(slot, code.add_product(numerator, numerator, short))

        return keep

    n, end = code.size(y), None
    for kind, step in zip(kinds, (2 * LANES, LANES, 1), strict=True):
        end = code.loop(n, step, body(kind), start=end)
    found = ir.Constant(ir.IntType(64), 0)
    for i in range(LANES):
        some = ir.Constant(ir.IntType(1), 0)
        for kind in kinds:
            more = builder.fcmp_ordered(">", builder.load(slots[kind][i]), code.spread(least, kind))
            if kind != DOUBLE:
                lanes = builder.bitcast(more, ir.IntType(kind.count))
                more = builder.icmp_unsigned("!=", lanes, ir.Constant(lanes.type, 0))
            some = builder.or_(some, more)
        bit = builder.zext(some, found.type)
        found = builder.or_(found, builder.shl(bit, ir.Constant(found.type, i)))
    return found


dot: Any = intrinsic(_dot)
dot_block: Any = intrinsic(_dot_block)
dot_four: Any = intrinsic(_dot_four)
dot_rows: Any = intrinsic(_dot_rows)
gaining_rows: Any = intrinsic(_gaining_rows)
largest: Any = intrinsic(_largest)
subtract_block: Any = intrinsic(_subtract_block)
subtract_block_and_dot: Any = intrinsic(_subtract_block_and_dot)


@inlined
def position_of(x, value):
    """Return the first position of a value that x has."""
    p = 0
    while x[p] != value:
        p += 1
    return p
