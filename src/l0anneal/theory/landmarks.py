"""The landmarks of the branches: searches in log T for a transition, freezing and instability."""

from __future__ import annotations

import math
from collections.abc import Callable

from l0anneal.theory.branches import T_MIN, Branches
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.roots import brentq
from l0anneal.theory.states import State, Transition

__all__ = ["find_freezing", "find_instability", "find_transition"]


def find_transition(branches: Branches) -> Transition | None:
    """Return where the cooled and the planted branch have the same free entropy, or None."""
    if branches.coincide:
        return None
    cooled, planted = branches.segment("cooled"), branches.segment("planted")
    low = max(cooled.t_low, planted.t_low) * (1.0 + 1e-9)
    high = min(cooled.t_high, planted.t_high) * (1.0 - 1e-9)
    if not low < high:
        return None
    cooled_at, planted_at = _states(branches, "cooled"), _states(branches, "planted")

    def advantage(log_t: float) -> float:
        return planted_at(log_t).free_entropy - cooled_at(log_t).free_entropy

    top = math.log(high)
    bottom = math.log(low) if low > 0.0 else top - 2.0
    while low == 0.0 and advantage(bottom) <= 0.0 and bottom > math.log(T_MIN) + 2.0:
        bottom -= 2.0
    if advantage(bottom) <= 0.0 or advantage(top) >= 0.0:
        return None
    root = brentq(advantage, bottom, top, xtol=1e-13, rtol=1e-13)
    return Transition(math.exp(root) * branches.variance, cooled_at(root), planted_at(root))


def find_freezing(branches: Branches, branch: str) -> State | None:
    """Return the state at which the entropy of a branch vanishes, or None."""
    state_at = _states(branches, branch)

    def entropy(log_t: float) -> float:
        return state_at(log_t).entropy

    high, floor = _range(branches, branch)
    low = high
    while low > floor:
        low = max(low - 1.0, floor)
        if entropy(low) < 0.0:
            return state_at(brentq(entropy, low, high, xtol=1e-14, rtol=1e-14))
        high = low
    if branches.segment(branch).cold_end != "zero":
        return None
    # A branch that ends at T = 0 with a D = 1 always freezes: s falls as ½(α-ρ) log T.
    guess = floor - 2.0 * entropy(floor) / branches.model.gap
    if guess < math.log(1e-140):
        return None
    return state_at(brentq(entropy, guess - 1.0, floor, xtol=1e-14, rtol=1e-14))


def find_instability(branches: Branches, branch: str) -> State | None:
    """Return the state at which replica symmetry becomes unstable on cooling, or None."""
    state_at = _states(branches, branch)

    def excess(log_t: float) -> float:
        return state_at(log_t).at_ratio - 1.0

    high, floor = _range(branches, branch)
    low = high
    while low > floor:
        low = max(low - 0.5, floor)
        if excess(low) > 0.0:
            if excess(high) > 0.0:
                raise ConvergenceError(
                    f"replica symmetry is unstable at the hot end of the {branch} branch, "
                    f"T={math.exp(high) * branches.variance:.6g} ({branches})"
                )
            return state_at(brentq(excess, low, high, xtol=1e-13, rtol=1e-13))
        high = low
    return None


def _states(branches: Branches, branch: str) -> Callable[[float], State]:
    """Return the state of a branch as a function of log T, with T in units of the variance of y."""
    return lambda log_t: branches.state(math.exp(log_t) * branches.variance, branch)


def _range(branches: Branches, branch: str) -> tuple[float, float]:
    """Return the largest and the smallest log T of a search along a branch."""
    segment = branches.segment(branch)
    return (
        math.log(min(segment.t_high * (1.0 - 1e-9), 1e3)),
        math.log(max(segment.t_low * (1.0 + 1e-9), T_MIN)),
    )
