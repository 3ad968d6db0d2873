"""The analytic numbers that the paper prints, recomputed, with an explanation where they differ.

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

__all__ = ["PaperNumber", "paper_numbers"]


@dataclass(frozen=True)
class PaperNumber:
    """One number of the paper, with the value computed here.

    Attributes
    ----------
    quantity : str
        Name of the quantity, with its parameters.
    printed : str
        The number as the paper prints it.  Where text and caption disagree, that of the text.
    paper : float
        The same number as a float.
    ours : float
        The value computed here.
    agrees : bool
        Whether ``ours``, rounded to the digits of the paper, is the number of the paper.
    note : str
        What differs and why; empty if there is nothing to say.

    See Also
    --------
    l0anneal.theory.paper_numbers : All rows.

    Examples
    --------
    >>> PaperNumber("α_c of l1 (ρ̂=.5)", "0.831", 0.831, 0.8312999, True, "").agrees
    True
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
        raise ConvergenceError("a transition or freezing point of the paper was not found")
    return value


def _row(quantity: str, printed: str, digits: int, ours: float, note: str = "") -> PaperNumber:
    paper = float(printed)
    agrees = float(f"{ours:.{digits - 1}e}") == paper
    return PaperNumber(quantity, printed, paper, ours, agrees, note)


def paper_numbers() -> tuple[PaperNumber, ...]:
    """Recompute every analytic number that the paper prints.

    Returns
    -------
    tuple of PaperNumber

    See Also
    --------
    l0anneal.theory.PaperNumber : One row of the table.
    l0anneal.theory.ReplicaSymmetric : Computes most of them.

    Examples
    --------
    >>> for row in paper_numbers()[:2]:
    ...     print(f"{row.quantity}: {row.printed}, here {row.ours:.5f}, agrees: {row.agrees}")
    ε of l1 (α=.5, ρ=.2, noise only): 0.214, here 0.21360, agrees: True
    ε of l1 + least squares (same): 0.0966, here 0.09659, agrees: True
    """
    noise = ReplicaSymmetric(0.5, 0.2, sigma_xi2=1.0)
    hard = ReplicaSymmetric(0.75, 0.65, 0.5)
    return (
        _row("ε of l1 (α=.5, ρ=.2, noise only)", "0.214", 3, l1.distortion(0.5, 0.2)),
        _row(
            "ε of l1 + least squares (same)",
            "0.0966",
            3,
            l1.distortion_after_least_squares(0.5, 0.2),
        ),
        _row("α_c of l1 (ρ̂=.5)", "0.831", 3, l1.reconstruction_limit(0.5)),
        _transition_row(hard),
        _floor_row(noise),
        *_metastable_rows(hard),
    )


def _transition_row(hard: ReplicaSymmetric) -> PaperNumber:
    transition, spinodal = _found(hard.transition()), hard.spinodals().planted
    return _row(
        "T_c (α=.75, ρ=.65, ρ̂=.5)",
        "3e-4",
        1,
        transition.temperature,
        "this is the value of the text; a caption of the paper has 3e-3, which is impossible "
        f"because the planted branch ends at T={spinodal:.4g}",
    )


def _floor_row(noise: ReplicaSymmetric) -> PaperNumber:
    frozen, unstable = _found(noise.freezing()), _found(noise.at_instability())
    return _row(
        "achievable limit ε_0 (α=.5, ρ=.2, noise only)",
        "0.00919",
        3,
        frozen.distortion,
        f"the replica-symmetric entropy vanishes at T={frozen.temperature:.6g}; the value of the "
        "paper is on our curve ε(T), but the entropy is still positive there. Replica symmetry is "
        f"unstable below T={unstable.temperature:.4g} (de Almeida-Thouless): one step of replica "
        f"symmetry breaking gives {ground_state(noise).distortion:.5g}, and the true limit is not "
        "expected to be lower",
    )


def _metastable_rows(hard: ReplicaSymmetric) -> tuple[PaperNumber, PaperNumber]:
    frozen, ground = _found(hard.freezing("cooled")), ground_state(hard)
    at_theirs = hard.at(1.3e-7, "cooled")
    return (
        _row(
            "metastable freezing T (α=.75, ρ=.65, ρ̂=.5)",
            "1.3e-7",
            2,
            frozen.temperature,
            f"at the temperature of the paper our entropy is still {at_theirs.entropy:+.4f}; one "
            f"step of replica symmetry breaking gives 1/y={1.0 / ground.y:.5g}, which is not the "
            "number of the paper either",
        ),
        _row(
            "ε at that freezing",
            "8.6e-9",
            2,
            frozen.distortion,
            "the pair (T, ε) of the paper is on our curve, "
            f"ε(1.3e-7)={at_theirs.distortion:.4g}; one step of replica symmetry breaking gives "
            f"{ground.distortion:.5g}",
        ),
    )
