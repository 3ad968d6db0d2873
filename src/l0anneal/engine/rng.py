"""The random number generator of the kernels: xoshiro256++, whose state is four 64-bit words.

The state is a plain ``uint64`` array among the arguments of a kernel, so a chain can stop after any
proposal and continue later with the same stream, in another thread or another process. States are
seeded from :class:`numpy.random.SeedSequence`, whose children give independent chains.
"""

import math

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.kernel import inlined, kernel

__all__ = ["accepts", "below", "stream", "uniform"]

_NEVER = 40.0  # exp(−40) is less than 2⁻⁵³, the smallest number above zero that `uniform` draws

_MASK32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def stream(seed: np.random.SeedSequence) -> NDArray[np.uint64]:
    """Return the generator's initial state for ``seed``."""
    return seed.generate_state(4, np.uint64).astype(np.uint64)


@kernel
def _rotate(word, bits):
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@kernel
def _next(state):
    result = _rotate(state[0] + state[3], 23) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = _rotate(state[3], 45)
    return result


@kernel
def uniform(state):
    """Draw a float from [0, 1) with 53 random bits."""
    return (_next(state) >> np.uint64(11)) * 2.0**-53


@kernel
def below(state, n):
    """Draw an integer from 0, ..., n − 1 without bias (n < 2³²), by Lemire's method."""
    bound = np.uint64(n)
    product = (_next(state) >> _32) * bound
    low = product & _MASK32
    if low < bound:
        threshold = (np.uint64(2**32) - bound) % bound
        while low < threshold:
            product = (_next(state) >> _32) * bound
            low = product & _MASK32
    return np.int64(product >> _32)


@inlined
def accepts(chance, cost):
    """Whether a number drawn by `uniform` is less than exp(−cost), as in Metropolis' rule."""
    if cost > _NEVER and chance > 0.0:
        return False  # without the exponential, which takes as long as the rest of a proposal
    return chance < math.exp(-cost)
