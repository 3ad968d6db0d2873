"""Random streams: one seed for a run, and a named stream for each use of randomness in it."""

import hashlib
import numbers

import numpy as np

__all__ = ["STREAMS", "RandomState", "check_same_seed", "seed_of", "stream_of"]

RandomState = None | int | np.random.SeedSequence | np.random.Generator

# The spawn key of each stream. `...` stands for an index: of a chain, a replica, a rung, a fold. Results
# depend on these numbers, so they never change. A new use of randomness gets a new name; a name that is
# not listed here gets a key from its letters.
STREAMS: dict[str, tuple[object, ...]] = {
    "annealing chain": (...,),
    "annealing rehearsal": (2**32 - 1,),
    "annealing heated back": (2**32 - 2,),
    "kick chain": (...,),
    "kick start": (..., 1),
    "second opinion": (1,),
    "temper replica": (0, ...),
    "temper exchange": (1,),
    "temper start": (2, ...),
    "temper survey": (3, ...),
    "population replicas": (0,),
    "population start": (1, ...),
    "population resampling": (2,),
    "evidence attempt": (...,),
    "path annealing": (0,),
    "path fold": (...,),
    "path shuffle": (2**32 - 3,),
    "coding": (),
}


def seed_of(random_state: RandomState | np.random.RandomState) -> int:
    """Return the integer that stands for ``random_state``; None draws a fresh one.

    The same integer, given again as random state, gives the same result.

    Examples
    --------
    >>> seed_of(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(random_state, np.random.SeedSequence):
        words = random_state.generate_state(4, np.uint32)
        return int.from_bytes(words.tobytes(), "little")
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must be ≥ 0; got {random_state}")
        return int(random_state)
    raise ValueError(
        "random_state must be None, an integer, a SeedSequence, a Generator or a RandomState; "
        f"got {random_state!r}"
    )


def check_same_seed(random_state: RandomState) -> None:
    """Raise ValueError if a later call could not have the same seed, which a checkpoint needs.

    Examples
    --------
    >>> check_same_seed(7)
    """
    if not isinstance(random_state, (numbers.Integral, np.random.SeedSequence)):
        raise ValueError(
            f"checkpoint needs an integer as random_state, so that a later call continues with the same "
            f"random numbers; got {random_state!r}"
        )


def stream_of(seed: int, name: str, *indices: int) -> np.random.SeedSequence:
    """Return the seed sequence of a named stream of a run, independent of all its other streams.

    Examples
    --------
    >>> stream_of(7, "kick start", 3).spawn_key
    (3, 1)
    """
    key = STREAMS.get(name)
    if key is None:  # a sampler of somebody else's: a key that no sampler of ours has
        word = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
        key = (2**32 - 4, word, *(... for _ in indices))
    if key.count(...) != len(indices):
        raise ValueError(
            f"the random stream {name!r} needs {key.count(...)} indices; got {len(indices)}"
        )
    given = iter(indices)
    numbers_ = tuple(next(given) if part is ... else part for part in key)
    return np.random.SeedSequence(seed, spawn_key=numbers_)  # type: ignore[arg-type]
