"""The loops over U and over slots that an exchange needs, in vector instructions (see `vectors`)."""

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from l0anneal.engine.vector_code import (
    DOUBLE,
    INDEX,
    LANES,
    VECTOR,
    WIDE,
    VectorCode,
    are_numbers,
    are_vectors,
    is_matrix,
)

__all__ = ["change_block", "multiply_block", "open_slot", "regress"]


def _multiply_block(typingctx: Any, U: Any, m: Any, xs: Any, ys: Any) -> Any:
    """Multiply rows m, ..., m + 3 of a symmetric matrix by vectors, up to the square on the diagonal.

    m is a multiple of four, and only columns 0, ..., m + 3 of the rows are used. The part left of the
    square is used twice: as itself it contributes to elements m, ..., m + 3 of each product, and
    transposed to the elements before. Elements m, ..., m + 3 of the products ``ys`` are set, and the
    elements before are added to.
    """
    if not (is_matrix(U) and are_vectors(*xs, *ys)):
        return None
    return types.void(U, m, xs, ys), _generate_multiply_block


def _generate_multiply_block(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    U, m, xs, ys = code.values
    rows = code.rows(U, m)
    _multiply(code, rows, m, xs, ys, lambda kind: partial(code.load_all, rows, kind=kind))
    return context.get_dummy_value()


def _change_block(
    typingctx: Any, U: Any, m: Any, a: Any, x: Any, b: Any, y: Any, d: Any, xs: Any, ys: Any
) -> Any:
    """Add a_i x + b_i y to rows i = m, ..., m + 3 of a matrix, and do `multiply_block` with the result.

    Elements m, ..., m + 3 of d receive the new diagonal.
    """
    if not (is_matrix(U) and are_vectors(a, x, b, y, d, *xs, *ys)):
        return None
    return types.void(U, m, a, x, b, y, d, xs, ys), _generate_change_block


def _generate_change_block(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    U, m, a, x, b, y, d, xs, ys = code.values
    rows = code.rows(U, m)
    of_x, of_y = ([code.load(of, code.after(m, i), DOUBLE) for i in range(LANES)] for of in (a, b))

    square = _multiply(
        code, rows, m, xs, ys, lambda kind: code.changing(rows, of_x, of_y, x, y, kind)
    )
    diagonal = square[0]
    for i in range(1, LANES):
        lanes = tuple(LANES + i if lane == i else lane for lane in range(LANES))
        diagonal = code.shuffle(diagonal, square[i], lanes)
    code.store(diagonal, d, m)
    return context.get_dummy_value()


def _multiply(
    code: VectorCode,
    rows: list[Any],
    m: Any,
    xs: list[Any],
    ys: list[Any],
    loading: Callable[[Any], Callable[[Any], list[Any]]],
) -> list[Any]:
    """Generate `multiply_block`; ``loading(kind)`` returns what generates the vectors of all rows.

    The square on the diagonal is returned.
    """
    builder = code.builder
    numbers = [[code.load(x, code.after(m, i), DOUBLE) for i in range(LANES)] for x in xs]
    wides = [[code.sums(1, WIDE)[0] for _ in rows] for _ in xs]

    def add(kind: Any, sums: list[list[Any]]) -> Callable[[Any], None]:
        load = loading(kind)
        factors = [[code.spread(number, kind) for number in own] for own in numbers]

        def body(at: Any) -> None:
            left = load(at)
            for x, y, own, slots in zip(xs, ys, factors, sums, strict=True):
                right, total = code.load(x, at, kind), code.load(y, at, kind)
                for part, factor, slot in zip(left, own, slots, strict=True):
                    total = code.add_product(part, factor, total)
                    code.add_to(slot, part, right)
                code.store(total, y, at)

        return body

    end = code.loop(m, 2 * LANES, add(WIDE, wides))
    halves = [[code.halves(wide) for wide in own] for own in wides]
    odd = builder.icmp_unsigned("!=", end, m)
    with builder.if_then(odd):
        add(VECTOR, [[half[0] for half in own] for own in halves])(end)
    left = loading(VECTOR)(m)
    for y, own, sums in zip(ys, numbers, halves, strict=True):
        square = code.totals([builder.fadd(*map(builder.load, half)) for half in sums])
        for part, number in zip(left, own, strict=True):
            square = code.add_product(part, code.spread(number, VECTOR), square)
        code.store(square, y, m)
    return left


def _regress(
    typingctx: Any,
    v: Any,
    u: Any,
    of_U: Any,
    of_G: Any,
    k: Any,
    freed: Any,
    inverse: Any,
    least: Any,
) -> Any:
    """Subtract v_k freed u from v, set v_k to 0, and return the largest of the new diagonal.

    That is (v_m² inverse − u_m² freed + of_U_m) of_G_m for m ≠ k, or ``least`` if that is larger.
    """
    if not (are_vectors(v, u, of_U, of_G) and are_numbers(freed, inverse, least)):
        return None
    return types.float64(v, u, of_U, of_G, k, freed, inverse, least), _generate_regress


def _generate_regress(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    v, u, of_U, of_G, k, freed, inverse, least = code.values
    shift = builder.fmul(code.load(v, k, DOUBLE), freed)
    slots = {
        kind: cgutils.alloca_once_value(builder, code.spread(least, kind))
        for kind in (WIDE, DOUBLE)
    }

    def body(kind: Any) -> Callable[[Any], None]:
        shifts, freeds, inverses = (code.spread(x, kind) for x in (shift, freed, inverse))
        nothing = ir.Constant(kind, None)

        def change(at: Any) -> None:
            here = code.positions(at, k, kind)
            left, right = code.load(v, at, kind), code.load(u, at, kind)
            left = builder.fsub(left, builder.fmul(shifts, right))
            left = builder.select(here, nothing, left)
            code.store(left, v, at)
            gained = builder.fmul(builder.fmul(left, left), inverses)
            lost = builder.fmul(builder.fmul(right, right), freeds)
            value = builder.fadd(builder.fsub(gained, lost), code.load(of_U, at, kind))
            value = builder.fmul(value, code.load(of_G, at, kind))
            code.keep_larger(slots[kind], builder.select(here, nothing, value))

        return change

    n = code.size(u)
    end = code.loop(n, 2 * LANES, body(WIDE))
    code.loop(n, 1, body(DOUBLE), start=end)
    for i in range(2 * LANES):
        lane = builder.extract_element(builder.load(slots[WIDE]), ir.Constant(INDEX, i))
        code.keep_larger(slots[DOUBLE], lane)
    return builder.load(slots[DOUBLE])


def _open_slot(
    typingctx: Any,
    u: Any,
    v: Any,
    x: Any,
    a: Any,
    b: Any,
    k: Any,
    freed: Any,
    inverse: Any,
    lost: Any,
    gained: Any,
) -> Any:
    """Subtract lost u + gained v from x, except for x_k, which becomes ``gained``.

    Then set u_k = 0 and v_k = −1, and fill in a = −freed u and b = inverse v.
    """
    if not (are_vectors(u, v, x, a, b) and are_numbers(freed, inverse, lost, gained)):
        return None
    return types.void(u, v, x, a, b, k, freed, inverse, lost, gained), _generate_open_slot


def _generate_open_slot(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    u, v, x, a, b, k, freed, inverse, lost, gained = code.values

    def body(kind: Any) -> Callable[[Any], None]:
        numbers = (builder.fneg(freed), inverse, lost, gained)
        of_u, of_v, losts, gains = (code.spread(number, kind) for number in numbers)
        zero = ir.Constant(kind, None)
        minus_one = code.spread(ir.Constant(DOUBLE, -1.0), kind)

        def change(at: Any) -> None:
            here = code.positions(at, k, kind)
            left, right = code.load(u, at, kind), code.load(v, at, kind)
            both = builder.fadd(builder.fmul(losts, left), builder.fmul(gains, right))
            code.store(
                builder.select(here, gains, builder.fsub(code.load(x, at, kind), both)), x, at
            )
            left, right = builder.select(here, zero, left), builder.select(here, minus_one, right)
            code.store(left, u, at)
            code.store(right, v, at)
            code.store(builder.fmul(of_u, left), a, at)
            code.store(builder.fmul(of_v, right), b, at)

        return change

    n = code.size(u)
    end = code.loop(n, 2 * LANES, body(WIDE))
    code.loop(n, 1, body(DOUBLE), start=end)
    return context.get_dummy_value()


change_block: Any = intrinsic(_change_block)
multiply_block: Any = intrinsic(_multiply_block)
open_slot: Any = intrinsic(_open_slot)
regress: Any = intrinsic(_regress)
