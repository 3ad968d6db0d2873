"""Which kernel moves a chain at a temperature: the cheapest per change of the support.

The cost is counted in operations, never by the clock, so that a run can be had again. The choice
is made before a temperature begins, from the acceptance at the one before it, and then stands: a
choice that followed the chain's own last acceptances would change the law that it samples.

`pair_flip`, `pair_flip_direct` and `rejection_free` are one chain in law, at different costs.
`heat_bath` is another chain with the same stationary law: it draws from K supports where the pair
flip asks about one, so it changes the support more often per proposal.
"""

from collections.abc import Callable
from typing import Any

from l0anneal.engine.moves import heat_bath, multi_flip, pair_flip, pair_flip_direct, rejection_free

__all__ = ["KERNELS", "MOVES", "choose_kernel", "operations", "pair_acceptance"]

KERNELS: dict[str, Callable[..., Any]] = {
    "pair flip": pair_flip,
    "pair flip, direct": pair_flip_direct,
    "heat bath": heat_bath,
    "rejection free": rejection_free,
    "multi flip": multi_flip,
}

# the moves that a user can ask for, and the kernels that each of them may run
MOVES = {
    "pair flip": ("pair flip", "pair flip, direct"),
    "auto": ("pair flip", "pair flip, direct", "heat bath", "rejection free"),
    "heat bath": ("heat bath",),
    "rejection free": ("rejection free",),
    "multi flip": ("multi flip",),
}

# costs beside those of the accepted changes, in the floating-point operations of these: rounded
# from what benchmarks/moves.py measured at N = 400
_PROPOSAL = 500.0  # drawing a pair and looking it up, in no order that a cache could foresee
_WEIGH = 25.0  # the energy and the weight of one exchange in a row of them
_DRAW = 40.0  # and, for the heat bath, its admissibility and its place in the draw


def operations(
    acceptance: float, n_inside: int, n_outside: int, row: float = 0.0, cross: float = 0.0
) -> dict[str, float]:
    """Operations of each kernel for as many changes as the pair flip makes in one proposal.

    Parameters
    ----------
    acceptance : float
        Fraction of its proposals that the pair flip accepts.
    n_inside, n_outside : int
        K and N − K.
    row, cross : float
        What it costs to have a row of the Gram matrix, and K elements of one, if not all are there.
    """
    k = n_inside
    change = acceptance * (6.0 * n_outside * k + 2.0 * k * k + row)
    # of K exchanges in a row K a would be accepted; the heat bath makes one of them or none
    return {
        "pair flip": _PROPOSAL + change,
        "pair flip, direct": _PROPOSAL + (3.0 + 4.0 * acceptance) * k * k + cross,
        "heat bath": (_PROPOSAL + (_WEIGH + _DRAW) * k) * (1.0 / max(k, 1) + acceptance) + change,
        "rejection free": acceptance * _WEIGH * n_outside * k + change,
    }


def pair_acceptance(kernel: str, acceptance: float, n_inside: int) -> float:
    """Estimate what the pair flip would accept where ``kernel`` accepts this fraction."""
    if kernel == "heat bath":
        return min(1.0, acceptance / (max(1, n_inside) * max(1.0 - acceptance, 1e-6)))
    return acceptance


def choose_kernel(
    move: str,
    acceptance: float,
    n_inside: int,
    n_outside: int,
    row: float = 0.0,
    cross: float = 0.0,
) -> str:
    """Return the name of the kernel that ``move`` runs; arguments as `operations`.

    Where rows of the Gram matrix are missing, that decides between the two kernels of the pair
    flip, which make the same chain, and nothing else: how much memory there is changes no number.
    """
    costs = operations(acceptance, n_inside, n_outside)
    kernel = min(MOVES[move], key=lambda name: costs.get(name, 0.0))
    if kernel in MOVES["pair flip"]:
        costs = operations(acceptance, n_inside, n_outside, row, cross)
        kernel = min(MOVES["pair flip"], key=costs.__getitem__)
    return kernel
