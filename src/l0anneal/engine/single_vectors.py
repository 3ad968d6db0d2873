"""The pass of a ranking over rows of G in single precision, in vector instructions (see `vectors`)."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from l0anneal.engine.vector_code import SINGLE, SINGLES, Row, VectorCode

__all__ = ["TILE", "project_tile"]

TILE = 64  # columns that are treated at once: 256 bytes of each row


def _are_single(n_dimensions: int, *kinds: Any) -> bool:
    return all(
        isinstance(kind, types.Array)
        and kind.ndim == n_dimensions
        and kind.layout == "C"
        and kind.dtype == types.float32
        for kind in kinds
    )


def _project_tile(typingctx: Any, rows: Any, tile: Any, u: Any, v: Any, s: Any, c: Any) -> Any:
    """Set s to the sum of u_k times row k of a tile, and add the sum of v_k times row k to c.

    ``rows`` has the indices tile, k and column of the tile; s and c are by column of all tiles.
    """
    if not (_are_single(3, rows) and _are_single(1, u, v, s, c)):
        return None
    return types.void(rows, tile, u, v, s, c), _generate_project_tile


def _generate_project_tile(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = VectorCode(context, builder, signature, args)
    rows, tile, u, v, s, c = code.values
    width = SINGLES.count
    parts = range(TILE // width)
    size = ir.Constant(tile.type, TILE)
    n_slots = builder.extract_value(rows.shape, 1)
    first = builder.mul(tile, size)  # column
    begin = Row(builder.gep(rows.data, [builder.mul(first, n_slots)]))
    leaving = code.sums(len(parts), SINGLES)
    entering = [
        cgutils.alloca_once_value(builder, code.load(c, code.after(first, part * width), SINGLES))
        for part in parts
    ]

    def add_row(k: Any) -> None:
        of_u, of_v = (code.spread(code.load(x, k, SINGLE), SINGLES) for x in (u, v))
        at = builder.mul(k, size)
        for part in parts:
            row = code.load(begin, code.after(at, part * width), SINGLES)
            code.add_to(leaving[part], of_u, row)
            code.add_to(entering[part], of_v, row)

    code.loop(n_slots, 1, add_row)
    for part in parts:
        at = code.after(first, part * width)
        code.store(builder.load(leaving[part]), s, at)
        code.store(builder.load(entering[part]), c, at)
    return context.get_dummy_value()


project_tile: Any = intrinsic(_project_tile)
