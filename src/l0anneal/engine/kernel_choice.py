"""Choose the kernel that costs least per change of the support at a given temperature.

Costs are counted in operations and never measured by the clock, so that runs are reproducible. The
kernel for a temperature is chosen before the temperature begins, from the acceptance rate at the
previous one, and then kept: a choice that followed the chain's own latest acceptances would change
the law that the chain samples.

`pair_flip`, `pair_flip_direct` and `rejection_free` are the same chain in law, at different costs.
`heat_bath` is another chain with the same stationary law: a proposal chooses among K + 1 supports,
where a proposal of the pair flip tests one, so that it changes the support more often.
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

# the moves that a user can ask for, and the kernels that each of them may choose from
MOVES = {
    "pair flip": ("pair flip", "pair flip, direct"),
    "auto": ("pair flip", "pair flip, direct", "heat bath", "rejection free"),
    "heat bath": ("heat bath",),
    "rejection free": ("rejection free",),
    "multi flip": ("multi flip",),
}

# Costs of everything but the accepted changes, in units of a floating-point operation of such a
# change. They are rounded from measurements of benchmarks/moves.py at N = 400.
_PROPOSAL = 500.0  # draw a pair and read its entries of the tableau, at random places in memory
_WEIGH = 25.0  # compute the energy and the weight of one exchange in a row of exchanges
_DRAW = 40.0  # for the heat bath: also test that the exchange is admissible, and draw from the row


def operations(
    acceptance: float, n_inside: int, n_outside: int, row: float = 0.0, cross: float = 0.0
) -> dict[str, float]:
    """Count the operations that each kernel needs for as many changes as one pair flip makes.

    Parameters
    ----------
    acceptance : float
        Fraction of proposals that the pair flip accepts.
    n_inside, n_outside : int
        K and N − K.
    row, cross : float
        Operations to compute a row of the Gram matrix, and K elements of one, where the matrix is not
        held in memory.

    Returns
    -------
    dict
        Number of operations by the kernel's name.
    """
    k = n_inside
    change = acceptance * (6.0 * n_outside * k + 2.0 * k * k + row)
    # Of the K exchanges in a row, the pair flip would accept K times ``acceptance``; the heat bath
    # makes one of them or none.
    return {
        "pair flip": _PROPOSAL + change,
        "pair flip, direct": _PROPOSAL + (1.75 + 3.25 * acceptance) * k * k + cross,
        "heat bath": (_PROPOSAL + (_WEIGH + _DRAW) * k) * (1.0 / max(k, 1) + acceptance) + change,
        "rejection free": acceptance * _WEIGH * n_outside * k + change,
    }


def pair_acceptance(kernel: str, acceptance: float, n_inside: int) -> float:
    """Estimate the acceptance rate of the pair flip from that of ``kernel``."""
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
    """Return the name of the cheapest kernel of ``move``; the other arguments are as in `operations`.

    The costs of missing rows of the Gram matrix only decide between the two kernels of the pair flip,
    which are the same chain, so that the memory budget changes no number.
    """
    costs = operations(acceptance, n_inside, n_outside)
    kernel = min(MOVES[move], key=lambda name: costs.get(name, 0.0))
    if kernel in MOVES["pair flip"]:
        costs = operations(acceptance, n_inside, n_outside, row, cross)
        kernel = min(MOVES["pair flip"], key=costs.__getitem__)
    return kernel
