"""One seed, one result: whatever the caller gives as random state becomes one integer."""

import numbers

import numpy as np

__all__ = ["RandomState", "child", "seed_of"]

RandomState = None | int | np.random.SeedSequence | np.random.Generator


def seed_of(random_state: RandomState) -> int:
    """Return the integer that stands for ``random_state``; None draws a fresh one.

    The same integer given again as random state gives the same result again.
    """
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(random_state, np.random.SeedSequence):
        words = random_state.generate_state(4, np.uint32)
        return int.from_bytes(words.tobytes(), "little")
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must be ≥ 0; got {random_state}")
        return int(random_state)
    raise ValueError(
        "random_state must be None, an integer, a SeedSequence or a Generator; "
        f"got {random_state!r}"
    )


def child(seed: int, *key: int) -> np.random.SeedSequence:
    """Return the seed sequence of ``seed``'s descendant ``key``, independent of all others."""
    return np.random.SeedSequence(seed, spawn_key=key)
