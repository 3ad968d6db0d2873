"""Generate the code of loops in vectors of eight and four numbers; see `vectors`.

Numba's intrinsics are functions that write LLVM code for the types of their arguments. `VectorCode` has
the pieces of which the loops in `vectors`, `inverse_vectors` and `single_vectors` consist.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils

__all__ = [
    "DOUBLE",
    "FOUR",
    "INDEX",
    "LANES",
    "SINGLE",
    "SINGLES",
    "VECTOR",
    "WIDE",
    "Row",
    "VectorCode",
    "are_numbers",
    "are_vectors",
    "is_matrix",
]

LANES = 4
DOUBLE = ir.DoubleType()
VECTOR = ir.VectorType(DOUBLE, LANES)
WIDE = ir.VectorType(DOUBLE, 2 * LANES)
SINGLE = ir.FloatType()
SINGLES = ir.VectorType(SINGLE, 4 * LANES)
INDEX = ir.IntType(32)
FOUR = types.UniTuple(types.float64, 4)


def are_vectors(*kinds: Any) -> bool:
    """Whether all types are those of contiguous vectors of float64."""
    return all(
        isinstance(kind, types.Array)
        and kind.ndim == 1
        and kind.layout == "C"
        and kind.dtype == types.float64
        for kind in kinds
    )


def is_matrix(kind: Any) -> bool:
    """Whether a type is that of matrices of float64 with contiguous rows."""
    return (
        isinstance(kind, types.Array)
        and kind.ndim == 2
        and kind.layout == "C"
        and kind.dtype == types.float64
    )


def are_numbers(*kinds: Any) -> bool:
    """Whether all types are float64."""
    return all(kind == types.float64 for kind in kinds)


def _element(kind: Any) -> Any:
    """Return the type of the elements of a vector, or that of a number."""
    return kind.element if isinstance(kind, ir.VectorType) else kind


class Row(NamedTuple):
    """A row of a matrix: where it begins."""

    data: Any


class VectorCode:
    """Generates the code of one function; ``values`` are its arguments, arrays among them."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.returns = context, builder, signature.return_type
        self.values = [self._unpacked(k, v) for k, v in zip(signature.args, args, strict=True)]

    def _unpacked(self, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            kinds: list[Any] = list(kind)  # type: ignore[call-overload]
            parts = cgutils.unpack_tuple(self.builder, value, len(kinds))
            return [self._unpacked(k, part) for k, part in zip(kinds, parts, strict=True)]
        if isinstance(kind, types.Array):
            return self.context.make_array(kind)(self.context, self.builder, value)
        return value

    def rows(self, matrix: Any, m: Any) -> list[Any]:
        """Return four rows of a matrix, from row m on."""
        stride = self.builder.extract_value(matrix.strides, 0)
        address = self.builder.ptrtoint(matrix.data, stride.type)
        address = self.builder.add(address, self.builder.mul(m, stride))
        rows = []
        for _ in range(LANES):
            rows.append(Row(self.builder.inttoptr(address, matrix.data.type)))
            address = self.builder.add(address, stride)
        return rows

    def size(self, array: Any) -> Any:
        return self.builder.extract_value(array.shape, 0)

    def load(self, array: Any, at: Any, kind: Any) -> Any:
        """Load the number at position ``at``, or the vector that starts there."""
        loaded = self.builder.load(self._place(array, at, kind))
        loaded.align = 4 if _element(kind) == SINGLE else 8
        return loaded

    def load_all(self, rows: list[Any], at: Any, kind: Any) -> list[Any]:
        return [self.load(row, at, kind) for row in rows]

    def changing(
        self, rows: list[Any], a: list[Any], b: list[Any], x: Any, y: Any, kind: Any
    ) -> Callable[[Any], list[Any]]:
        """Return what adds a_i x + b_i y to row i, at a position, and returns the new vectors."""
        factors = [(self.spread(of_x, kind), self.spread(of_y, kind)) for of_x, of_y in zip(a, b)]

        def change(at: Any) -> list[Any]:
            left, right = self.load(x, at, kind), self.load(y, at, kind)
            values = self.load_all(rows, at, kind)
            for i, (of_x, of_y) in enumerate(factors):
                value = self.add_product(of_x, left, values[i])
                values[i] = self.add_product(of_y, right, value)
                self.store(values[i], rows[i], at)
            return values

        return change

    def store(self, value: Any, array: Any, at: Any) -> None:
        stored = self.builder.store(value, self._place(array, at, value.type))
        stored.align = 4 if _element(value.type) == SINGLE else 8

    def _place(self, array: Any, at: Any, kind: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(array.data, [at]), kind.as_pointer())

    def add_product(self, a: Any, b: Any, c: Any) -> Any:
        """Return ab + c, rounded once."""
        kind = a.type
        name = "f32" if _element(kind) == SINGLE else "f64"
        if isinstance(kind, ir.VectorType):
            name = f"v{kind.count}{name}"
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fma.{name}"
        )
        return self.builder.call(function, [a, b, c])

    def spread(self, number: Any, kind: Any) -> Any:
        """Return a number, or a vector of copies of it."""
        if not isinstance(kind, ir.VectorType):
            return number
        nothing = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(nothing, number, ir.Constant(INDEX, 0))
        everywhere = ir.Constant(ir.VectorType(INDEX, kind.count), [0] * kind.count)
        return self.builder.shuffle_vector(first, nothing, everywhere)

    def positions(self, at: Any, k: Any, kind: Any) -> Any:
        """Return which elements of the vector at a position are element k."""
        if kind == DOUBLE:
            return self.builder.icmp_unsigned("==", at, k)
        lanes = ir.VectorType(at.type, kind.count)
        ahead = self.builder.insert_element(
            ir.Constant(lanes, ir.Undefined), self.builder.sub(k, at), ir.Constant(INDEX, 0)
        )
        everywhere = ir.Constant(ir.VectorType(INDEX, kind.count), [0] * kind.count)
        ahead = self.builder.shuffle_vector(ahead, ahead, everywhere)
        return self.builder.icmp_unsigned("==", ahead, ir.Constant(lanes, list(range(kind.count))))

    def sums(self, n: int, kind: Any) -> list[Any]:
        """Return ``n`` variables that hold vectors of zeros."""
        zeros = ir.Constant(kind, None)
        return [cgutils.alloca_once_value(self.builder, zeros) for _ in range(n)]

    def halves(self, slot: Any) -> list[Any]:
        """Return two variables that hold the halves of a wide vector."""
        wide = self.builder.load(slot)
        return [
            cgutils.alloca_once_value(
                self.builder, self.shuffle(wide, wide, tuple(range(first, first + LANES)))
            )
            for first in (0, LANES)
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
            self.builder.extract_element(parts[0], ir.Constant(INDEX, i)) for i in range(LANES)
        )
        return cgutils.alloca_once_value(self.builder, add(add(a, b), add(c, d)))

    def totals(self, vectors: list[Any]) -> Any:
        """Return the sums of the lanes of four vectors, as a vector."""
        add, a, b, c, d = self.builder.fadd, *vectors
        low, high = (0, 4, 2, 6), (1, 5, 3, 7)  # of two vectors, in turns
        ab = add(self.shuffle(a, b, low), self.shuffle(a, b, high))  # a₀+a₁, b₀+b₁, a₂+a₃, b₂+b₃
        cd = add(self.shuffle(c, d, low), self.shuffle(c, d, high))
        return add(self.shuffle(ab, cd, (0, 1, 4, 5)), self.shuffle(ab, cd, (2, 3, 6, 7)))

    def shuffle(self, a: Any, b: Any, lanes: tuple[int, ...]) -> Any:
        mask = ir.Constant(ir.VectorType(INDEX, LANES), list(lanes))
        return self.builder.shuffle_vector(a, b, mask)

    def loop(self, n: Any, step: int, body: Callable[[Any], object], start: Any = None) -> Any:
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

    def dots(
        self,
        rows: list[Any],
        y: Any,
        n: Any,
        n_sums: int,
        kind: Any,
        beside: Callable[[Any], Callable[[Any], object]] = lambda kind: lambda at: None,
    ) -> list[Any]:
        """Return the inner products of rows with y, each in ``n_sums`` vectors of partial sums.

        These are vectors of four numbers; if ``kind`` is wide, two of them are added up as one. What
        ``beside(kind)`` returns is called at each position of a vector of a kind.
        """
        parts = n_sums * LANES // kind.count
        slots = [self.sums(parts, kind) for _ in rows]

        def adding(kind: Any) -> Callable[[Any, list[Any]], None]:
            also = beside(kind)

            def add(at: Any, slots: list[Any]) -> None:
                right = self.load(y, at, kind)
                for row, slot in zip(rows, slots, strict=True):
                    self.add_to(slot, self.load(row, at, kind), right)
                also(at)

            return add

        add = adding(kind)

        def several(at: Any) -> None:
            for part in range(parts):
                add(self.after(at, part * kind.count), [own[part] for own in slots])

        end = self.loop(n, LANES * n_sums, several)
        sums = slots
        if kind == WIDE:
            sums = [[half for wide in own for half in self.halves(wide)] for own in slots]
        add_four = adding(VECTOR)
        end = self.loop(n, LANES, lambda at: add_four(at, [own[0] for own in sums]), start=end)
        totals = [self.total(own) for own in sums]
        add_one = adding(DOUBLE)
        self.loop(n, 1, lambda at: add_one(at, totals), start=end)
        return [self.builder.load(slot) for slot in totals]

    def as_tuple(self, values: list[Any]) -> Any:
        return self.context.make_tuple(self.builder, self.returns, values)
