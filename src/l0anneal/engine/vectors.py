"""The inner loops of the kernels in vector instructions, with a fixed order of summation.

A compiler that may reorder sums (``fastmath``) chooses an order that depends on what it inlines. A
kernel that has just been compiled and the same kernel loaded from the cache can then differ in the last
digit. The kernels are therefore compiled without ``fastmath``, and the loops that dominate their running
time are written here in vectors of eight and four numbers, which the compiler divides where a processor
has shorter ones. Each product is added by a fused multiply-add, which rounds once. The results have the
same bits on every machine. Processors since about 2013 have the instruction; where it is missing, a
function of the C library takes its place, which is slow.

Three of the loops treat four rows of a matrix at once, so that each element of the vectors that all four
need is loaded once. Vectors of eight numbers add up the same partial sums as two vectors of four. `dot`
and `largest` have vectors of four only: their arguments have often just been written, in shorter pieces,
and a processor waits if it has to put a vector together from several of them.
"""

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from l0anneal.engine.kernel import inlined

__all__ = [
    "dot",
    "dot_four",
    "largest",
    "most_gained",
    "multiply_four",
    "position_of",
    "subtract_four",
]

_LANES = 4
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, _LANES)
_WIDE = ir.VectorType(_DOUBLE, 2 * _LANES)
_INDEX = ir.IntType(32)


def _arrays(*kinds: Any) -> bool:
    """Whether all types are those of contiguous vectors of float64."""
    return all(
        isinstance(kind, types.Array)
        and kind.ndim == 1
        and kind.layout == "C"
        and kind.dtype == types.float64
        for kind in kinds
    )


def _numbers(*kinds: Any) -> bool:
    return all(kind == types.float64 for kind in kinds)


class _Code:
    """Generates the code of one function; ``values`` are its arguments, arrays among them."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.returns = context, builder, signature.return_type
        self.values = [
            context.make_array(kind)(context, builder, value)
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(signature.args, args, strict=True)
        ]

    def size(self, array: Any) -> Any:
        return self.builder.extract_value(array.shape, 0)

    def load(self, array: Any, at: Any, kind: Any) -> Any:
        """Load the number at position ``at``, or the vector that starts there."""
        loaded = self.builder.load(self._place(array, at, kind))
        loaded.align = 8
        return loaded

    def store(self, value: Any, array: Any, at: Any) -> None:
        self.builder.store(value, self._place(array, at, value.type)).align = 8

    def _place(self, array: Any, at: Any, kind: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(array.data, [at]), kind.as_pointer())

    def add_product(self, a: Any, b: Any, c: Any) -> Any:
        """Return ab + c, rounded once."""
        kind = a.type
        name = "llvm.fma.f64" if kind == _DOUBLE else f"llvm.fma.v{kind.count}f64"
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(kind, [kind] * 3), name
        )
        return self.builder.call(function, [a, b, c])

    def spread(self, number: Any, kind: Any) -> Any:
        """Return a number, or a vector of copies of it."""
        if kind == _DOUBLE:
            return number
        nothing = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(nothing, number, ir.Constant(_INDEX, 0))
        everywhere = ir.Constant(ir.VectorType(_INDEX, kind.count), [0] * kind.count)
        return self.builder.shuffle_vector(first, nothing, everywhere)

    def sums(self, n: int, kind: Any) -> list[Any]:
        """Return ``n`` variables that hold vectors of zeros."""
        zeros = ir.Constant(kind, None)
        return [cgutils.alloca_once_value(self.builder, zeros) for _ in range(n)]

    def halves(self, slot: Any) -> list[Any]:
        """Return two variables that hold the halves of a wide vector."""
        wide = self.builder.load(slot)
        return [
            cgutils.alloca_once_value(
                self.builder, self._shuffle(wide, wide, tuple(range(first, first + _LANES)))
            )
            for first in (0, _LANES)
        ]

    def add_to(self, slot: Any, a: Any, b: Any) -> None:
        self.builder.store(self.add_product(a, b, self.builder.load(slot)), slot)

    def keep_larger(self, slot: Any, value: Any) -> None:
        """Replace what a variable holds by a value that is larger, lane by lane; NaN is not."""
        here = self.builder.load(slot)
        larger = self.builder.fcmp_ordered(">", value, here)
        self.builder.store(self.builder.select(larger, value, here), slot)

    def total(self, sums: list[Any]) -> Any:
        """Return a variable with the sum of all lanes of two or four vectors, or of one."""
        add = self.builder.fadd
        parts = [self.builder.load(slot) for slot in sums]
        while len(parts) > 1:
            parts = [add(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        a, b, c, d = (
            self.builder.extract_element(parts[0], ir.Constant(_INDEX, i)) for i in range(_LANES)
        )
        return cgutils.alloca_once_value(self.builder, add(add(a, b), add(c, d)))

    def totals(self, vectors: list[Any]) -> Any:
        """Return the sums of the lanes of four vectors, as a vector."""
        add, a, b, c, d = self.builder.fadd, *vectors
        low, high = (0, 4, 2, 6), (1, 5, 3, 7)  # of two vectors, in turns
        ab = add(self._shuffle(a, b, low), self._shuffle(a, b, high))  # a₀+a₁, b₀+b₁, a₂+a₃, b₂+b₃
        cd = add(self._shuffle(c, d, low), self._shuffle(c, d, high))
        return add(self._shuffle(ab, cd, (0, 1, 4, 5)), self._shuffle(ab, cd, (2, 3, 6, 7)))

    def _shuffle(self, a: Any, b: Any, lanes: tuple[int, ...]) -> Any:
        mask = ir.Constant(ir.VectorType(_INDEX, _LANES), list(lanes))
        return self.builder.shuffle_vector(a, b, mask)

    def loop(self, n: Any, step: int, body: Callable[[Any], None], start: Any = None) -> Any:
        """Call ``body`` at each multiple of ``step`` below n that has a whole step; return the end."""
        end = self.builder.and_(n, ir.Constant(n.type, -step))
        begin = ir.Constant(n.type, 0) if start is None else start
        with cgutils.for_range_slice(self.builder, begin, end, ir.Constant(n.type, step)) as (
            at,
            _,
        ):
            body(at)
        return end

    def after(self, at: Any, n: int) -> Any:
        return self.builder.add(at, ir.Constant(at.type, n))

    def dots(self, rows: list[Any], y: Any, n: Any, n_sums: int, kind: Any) -> list[Any]:
        """Return the inner products of rows with y, each in ``n_sums`` vectors of partial sums.

        These are vectors of four numbers; if ``kind`` is wide, two of them are added up as one.
        """
        parts = n_sums * _LANES // kind.count
        slots = [self.sums(parts, kind) for _ in rows]

        def add(at: Any, kind: Any, slots: list[Any]) -> None:
            right = self.load(y, at, kind)
            for row, slot in zip(rows, slots, strict=True):
                self.add_to(slot, self.load(row, at, kind), right)

        def several(at: Any) -> None:
            for part in range(parts):
                add(self.after(at, part * kind.count), kind, [own[part] for own in slots])

        end = self.loop(n, _LANES * n_sums, several)
        sums = slots
        if kind == _WIDE:
            sums = [[half for wide in own for half in self.halves(wide)] for own in slots]
        end = self.loop(n, _LANES, lambda at: add(at, _VECTOR, [own[0] for own in sums]), start=end)
        totals = [self.total(own) for own in sums]

        def single(at: Any) -> None:
            right = self.load(y, at, _DOUBLE)
            for row, slot in zip(rows, totals, strict=True):
                self.add_to(slot, self.load(row, at, _DOUBLE), right)

        self.loop(n, 1, single, start=end)
        return [self.builder.load(slot) for slot in totals]

    def as_tuple(self, values: list[Any]) -> Any:
        return self.context.make_tuple(self.builder, self.returns, values)


def _dot(typingctx: Any, x: Any, y: Any) -> Any:
    """Return the inner product of two vectors; ``y`` is at least as long as ``x``."""
    return (types.float64(x, y), _generate_dot) if _arrays(x, y) else None


def _generate_dot(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = _Code(context, builder, signature, args)
    x, y = code.values
    return code.dots([x], y, code.size(x), 4, _VECTOR)[0]


def _largest(typingctx: Any, x: Any, least: Any) -> Any:
    """Return the largest element of a vector, or ``least`` if that is larger; NaN is ignored."""
    if not (_arrays(x) and _numbers(least)):
        return None
    return types.float64(x, least), _generate_largest


def _generate_largest(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = _Code(context, builder, signature, args)
    x, least = code.values
    vectors = [cgutils.alloca_once_value(builder, code.spread(least, _VECTOR)) for _ in range(4)]
    number = cgutils.alloca_once_value(builder, least)

    def wide(at: Any) -> None:
        for part, slot in enumerate(vectors):
            code.keep_larger(slot, code.load(x, code.after(at, part * _LANES), _VECTOR))

    end = code.loop(code.size(x), 4 * _LANES, wide)
    for slot in vectors[1:]:
        code.keep_larger(vectors[0], builder.load(slot))
    for i in range(_LANES):
        code.keep_larger(
            number, builder.extract_element(builder.load(vectors[0]), ir.Constant(_INDEX, i))
        )
    code.loop(
        code.size(x), 1, lambda at: code.keep_larger(number, code.load(x, at, _DOUBLE)), start=end
    )
    return builder.load(number)


def _dot_four(typingctx: Any, a: Any, b: Any, c: Any, d: Any, y: Any) -> Any:
    """Return the inner products of four rows with y; the rows are at least as long as ``y``."""
    if not _arrays(a, b, c, d, y):
        return None
    return types.UniTuple(types.float64, 4)(a, b, c, d, y), _generate_dot_four


def _generate_dot_four(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = _Code(context, builder, signature, args)
    *rows, y = code.values
    return code.as_tuple(code.dots(rows, y, code.size(y), 2, _WIDE))


def _multiply_four(typingctx: Any, a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> Any:
    """Multiply four rows of a symmetric matrix by x, up to the square on the diagonal.

    The rows are m, ..., m + 3 for a multiple m of four, and end with column m + 3. Their part left of
    the square is used twice: as itself it contributes to elements m, ..., m + 3 of y, and transposed to
    the elements before. Elements m, ..., m + 3 of y are set, and the elements before are added to.
    """
    if not _arrays(a, b, c, d, x, y):
        return None
    return types.void(a, b, c, d, x, y), _generate_multiply_four


def _generate_multiply_four(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = _Code(context, builder, signature, args)
    *rows, x, y = code.values
    n = code.size(rows[0])
    m = builder.sub(n, ir.Constant(n.type, _LANES))
    numbers = [code.load(x, code.after(m, i), _DOUBLE) for i in range(_LANES)]
    factors = [code.spread(number, _VECTOR) for number in numbers]
    wide_factors = [code.spread(number, _WIDE) for number in numbers]
    wides = [code.sums(1, _WIDE)[0] for _ in rows]

    def body(at: Any, kind: Any, factors: list[Any], slots: list[Any]) -> None:
        right, total = code.load(x, at, kind), code.load(y, at, kind)
        for row, factor, slot in zip(rows, factors, slots, strict=True):
            left = code.load(row, at, kind)
            total = code.add_product(left, factor, total)
            code.add_to(slot, left, right)
        code.store(total, y, at)

    end = code.loop(m, 2 * _LANES, lambda at: body(at, _WIDE, wide_factors, wides))
    sums = [code.halves(wide) for wide in wides]
    first = [own[0] for own in sums]
    code.loop(m, _LANES, lambda at: body(at, _VECTOR, factors, first), start=end)
    square = code.totals([builder.fadd(*map(builder.load, own)) for own in sums])
    for row, factor in zip(rows, factors, strict=True):
        square = code.add_product(code.load(row, m, _VECTOR), factor, square)
    code.store(square, y, m)
    return context.get_dummy_value()


def _subtract_four(
    typingctx: Any, a: Any, b: Any, c: Any, d: Any, s: Any, x: Any, q: Any, y: Any
) -> Any:
    """Subtract s_i x + q_i y from row i of four rows; s and q are tuples, and row a gives the length."""
    four = types.UniTuple(types.float64, 4)
    if not _arrays(a, b, c, d, x, y) or s != four or q != four:
        return None
    return types.void(a, b, c, d, s, x, q, y), _generate_subtract_four


def _generate_subtract_four(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = _Code(context, builder, signature, args)
    rows, (s, x, q, y) = code.values[:4], code.values[4:]
    s, q = (cgutils.unpack_tuple(builder, four, 4) for four in (s, q))
    n = code.size(rows[0])

    def subtract(kind: Any) -> Callable[[Any], None]:
        factors = [
            [code.spread(builder.fneg(factor), kind) for factor in pair]
            for pair in zip(s, q, strict=True)
        ]

        def body(at: Any) -> None:
            left, right = code.load(x, at, kind), code.load(y, at, kind)
            for row, (of_x, of_y) in zip(rows, factors, strict=True):
                value = code.add_product(of_x, left, code.load(row, at, kind))
                code.store(code.add_product(of_y, right, value), row, at)

        return body

    end = code.loop(n, 2 * _LANES, subtract(_WIDE))
    end = code.loop(n, _LANES, subtract(_VECTOR), start=end)
    code.loop(n, 1, subtract(_DOUBLE), start=end)
    return context.get_dummy_value()


def _most_gained(
    typingctx: Any, w: Any, y: Any, freed: Any, margin: Any, gamma: Any, r: Any
) -> Any:
    """Return the largest (r + w_k y_k)² − (γ + w_k² freed_k) margin_k; NaN is ignored."""
    if not (_arrays(w, y, freed, margin) and _numbers(gamma, r)):
        return None
    return types.float64(w, y, freed, margin, gamma, r), _generate_most_gained


def _generate_most_gained(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = _Code(context, builder, signature, args)
    w, y, freed, margin, gamma, r = code.values
    n = code.size(w)
    least = ir.Constant(_DOUBLE, -math.inf)
    wides = [cgutils.alloca_once_value(builder, code.spread(least, _WIDE)) for _ in range(2)]

    def keep(at: Any, kind: Any, slot: Any) -> None:
        left = code.load(w, at, kind)
        numerator = code.add_product(left, code.load(y, at, kind), code.spread(r, kind))
        square = builder.fmul(left, left)
        distance = code.add_product(square, code.load(freed, at, kind), code.spread(gamma, kind))
        needed = builder.fneg(builder.fmul(distance, code.load(margin, at, kind)))
        code.keep_larger(slot, code.add_product(numerator, numerator, needed))

    def several(at: Any) -> None:
        for part, slot in enumerate(wides):
            keep(code.after(at, part * 2 * _LANES), _WIDE, slot)

    end = code.loop(n, 4 * _LANES, several)
    end = code.loop(n, 2 * _LANES, lambda at: keep(at, _WIDE, wides[0]), start=end)
    code.keep_larger(wides[0], builder.load(wides[1]))
    number = cgutils.alloca_once_value(builder, least)
    for i in range(2 * _LANES):
        code.keep_larger(
            number, builder.extract_element(builder.load(wides[0]), ir.Constant(_INDEX, i))
        )
    code.loop(n, 1, lambda at: keep(at, _DOUBLE, number), start=end)
    return builder.load(number)


dot: Any = intrinsic(_dot)
largest: Any = intrinsic(_largest)
dot_four: Any = intrinsic(_dot_four)
most_gained: Any = intrinsic(_most_gained)
multiply_four: Any = intrinsic(_multiply_four)
subtract_four: Any = intrinsic(_subtract_four)


@inlined
def position_of(x, value):
    """Return the first position of a value that x has."""
    p = 0
    while x[p] != value:
        p += 1
    return p
