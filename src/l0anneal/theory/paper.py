"""The paper's numbers, ours beside them, and why they differ where they do.

T. Obuchi and Y. Kabashima, "Sparse approximation problem: how rapid simulated annealing succeeds
and fails".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from l0anneal.theory import l1
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.replica import ReplicaSymmetric
from l0anneal.theory.rsb import ground_state


@dataclass(frozen=True)
class PaperNumber:
    """One number of the paper.

    Attributes
    ----------
    quantity : str
        What it is, with its parameters.
    printed : str
        As the paper prints it.
    paper : float
        The paper's value; of two conflicting ones, that of the text.
    ours : float
        Computed here, when asked for.
    agrees : bool
        Whether rounding to the paper's digits gives the paper's number.
    note : str
        What differs and why.
    """

    quantity: str
    printed: str
    paper: float
    ours: float
    agrees: bool
    note: str


_T = TypeVar("_T")


def _found(value: _T | None) -> _T:
    if value is None:
        raise ConvergenceError("a landmark of the paper's own parameters was not found")
    return value


def _row(
    quantity: str, printed: str, paper: float, digits: int, ours: float, note: str
) -> PaperNumber:
    agrees = float(f"{ours:.{digits - 1}e}") == paper
    return PaperNumber(quantity, printed, paper, ours, agrees, note)


def paper_numbers() -> tuple[PaperNumber, ...]:
    """Every analytic number the paper prints, recomputed.

    Examples
    --------
    >>> for row in paper_numbers()[:2]:
    ...     print(f"{row.quantity}: {row.printed}, here {row.ours:.5f}, agrees: {row.agrees}")
    ε of l1 (α=.5, ρ=.2, noise only): 0.214, here 0.21360, agrees: True
    ε of l1 + least squares (same): 0.0966, here 0.09659, agrees: True
    """
    noise = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1.0)
    hard = ReplicaSymmetric(0.75, 0.65, 0.5)
    frozen, metastable = _found(noise.freezing()), _found(hard.freezing("cooled"))
    transition, unstable = _found(hard.transition()), _found(noise.at_instability())
    spinodal = hard.spinodals().planted
    ground, metastable_ground = ground_state(noise), ground_state(hard)
    at_theirs = hard.at(1.3e-7, "cooled")
    return (
        _row(
            "ε of l1 (α=.5, ρ=.2, noise only)", "0.214", 0.214, 3, l1.distortion(0.5, 0.2), "agrees"
        ),
        _row(
            "ε of l1 + least squares (same)",
            "0.0966",
            0.0966,
            3,
            l1.distortion_after_least_squares(0.5, 0.2),
            "agrees",
        ),
        _row("α_c of l1 (ρ̂=.5)", "0.831", 0.831, 3, l1.reconstruction_limit(0.5), "agrees"),
        _row(
            "T_c (α=.75, ρ=.65, ρ̂=.5)",
            "3e-4 in the text, 3e-3 in a caption",
            3e-4,
            1,
            transition.temperature,
            f"the text is right; the planted branch ends at {spinodal:.4g}, so the caption's "
            "3e-3 is impossible",
        ),
        _row(
            "ε_0, achievable limit (α=.5, ρ=.2, noise only)",
            "0.00919",
            0.00919,
            3,
            frozen.distortion,
            f"replica-symmetric, s = 0 at T={frozen.temperature:.6g}; the paper's value lies on "
            "our curve ε(T) where s is still positive.  Replica symmetry is AT-unstable below "
            f"T={unstable.temperature:.4g}: one step of symmetry breaking gives "
            f"{ground.distortion:.5g}, and the true floor is not expected below that",
        ),
        _row(
            "freezing temperature of the metastable branch (α=.75, ρ=.65, ρ̂=.5)",
            "1.3e-7",
            1.3e-7,
            2,
            metastable.temperature,
            f"at the paper's T our entropy is still {at_theirs.entropy:+.4f}; symmetry breaking "
            f"gives 1/y={1.0 / metastable_ground.y:.5g}, which is not the paper's number either",
        ),
        _row(
            "ε at that freezing",
            "8.6e-9",
            8.6e-9,
            2,
            metastable.distortion,
            "the pair (T, ε) of the paper lies on our curve: "
            f"ε(1.3e-7)={at_theirs.distortion:.4g}; with symmetry breaking "
            f"{metastable_ground.distortion:.5g}",
        ),
    )
