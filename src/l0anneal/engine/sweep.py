"""The loop over proposals that all samplers on a workspace share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.kernel_choice import KERNELS, pair_acceptance
from l0anneal.engine.moves.protocol import ACCEPTED, PROPOSED, is_direct, new_tally
from l0anneal.engine.workspace import Workspace

__all__ = ["Mover", "Sweeps"]

LONGER = 8  # a chunk is so many times longer after one with so many times fewer changes


class Sweeps:
    """Sweeps of one kernel at one temperature; a sweep is N proposals.

    The kernel runs for `Workspace.chunk` proposals at a time, which take a few hundredths of a second if
    all of them are accepted, or for `LONGER` times as many where few are. ``workspace.pause`` is called
    between these chunks, so that it can stop the run. Cutting a run into chunks changes no number.

    Parameters
    ----------
    workspace : Workspace
        Holds the support that the kernel changes.
    kernel : callable
        A move; called as ``kernel(tableau, state, *law, stop, [energies,] tally)``.
    state : uint64 array
        State of the random number generator; changed in place.
    *law : arguments
        Arguments of the kernel between ``state`` and ``stop``, such as the inverse temperature.
    n_sweeps : int
        Number of sweeps.
    record : bool
        Whether the kernel takes an array that receives the energy after each sweep.
    n_pairs : int
        For `multi_flip`: the largest number of pairs to exchange at once.
    length : int, optional
        Number of proposals in a sweep; by default N.
    few : bool
        Whether few proposals are expected to be accepted.

    Attributes
    ----------
    energies : ndarray of shape (n_sweeps,)
        Energy after each sweep, in the engine's units, relative to the empty support.
    """

    def __init__(
        self,
        workspace: Workspace,
        kernel: Callable[..., Any],
        state: NDArray[np.uint64],
        *law: Any,
        n_sweeps: int,
        record: bool = True,
        n_pairs: int = 2,
        length: int | None = None,
        few: bool = False,
    ) -> None:
        self.workspace, self.kernel, self.n_sweeps = workspace, kernel, n_sweeps
        self.length = workspace.problem.n_columns if length is None else length
        self.before = (state, *law)
        self.few_expected = few
        self.tally = new_tally(n_pairs)
        self.energies = np.zeros(n_sweeps)
        self.after = (self.energies, self.tally) if record else (self.tally,)

    def each(self) -> Iterator[int]:
        """Run one sweep at a time, and yield the number of sweeps done after each."""
        for done in range(1, self.n_sweeps + 1):
            self._run(done)
            yield done

    def all(self, progress: Callable[[int], object] = lambda n: None) -> None:
        """Run all sweeps; ``progress`` is called with the number of sweeps completed by each chunk."""
        self._run(self.n_sweeps, progress)

    @property
    def few(self) -> bool:
        """Whether few of the proposals so far were accepted; False while there is little to tell."""
        return bool((self.tally[ACCEPTED] + 1) * LONGER <= self.tally[PROPOSED])

    @property
    def acceptance(self) -> float:
        """Fraction of proposals that were accepted."""
        return float(self.tally[ACCEPTED] / max(1, self.tally[PROPOSED]))

    def _run(self, n_sweeps: int, progress: Callable[[int], object] = lambda n: None) -> None:
        workspace, length = self.workspace, self.length
        end = n_sweeps * length
        direct = is_direct(self.kernel)
        while self.tally[PROPOSED] < end:
            before = int(self.tally[PROPOSED])
            few = self.few if before else self.few_expected
            longer = LONGER if few and not direct else 1
            stop = min(end, before + longer * workspace.chunk(direct))
            workspace.run(self.kernel, *self.before, stop, *self.after)
            workspace.pause()
            progress(int(self.tally[PROPOSED]) // length - before // length)


class Mover:
    """Moves a support from temperature to temperature, each time with the kernel that suits it.

    The kernel for a temperature is chosen from the acceptance at the temperature before, see
    `l0anneal.engine.kernel_choice`.

    Parameters
    ----------
    workspace : Workspace
        The support to be moved.
    state : uint64 array
        The random stream.
    move : str
        One of `MOVES`.
    n_pairs : int
        For "multi flip".

    Attributes
    ----------
    kernel : str
        The kernel at the last temperature.
    """

    def __init__(
        self,
        workspace: Workspace,
        state: NDArray[np.uint64],
        move: str = "pair flip",
        n_pairs: int = 2,
    ) -> None:
        self.workspace, self.state, self.move, self.n_pairs = workspace, state, move, n_pairs
        self.kernel = ""
        self._last: Sweeps | None = None

    def at(self, mu: float, n_sweeps: int) -> Sweeps:
        """Return the sweeps at an inverse temperature, in the engine's units, ready to be run."""
        acceptance = 1.0
        if self._last is not None:
            size = self.workspace.size
            acceptance = pair_acceptance(self.kernel, self._last.acceptance, size)
        before = self.kernel
        self.kernel = self.workspace.choose_kernel(self.move, acceptance)
        same = self.kernel == before  # otherwise the last acceptance says little
        self._last = Sweeps(
            self.workspace,
            KERNELS[self.kernel],
            self.state,
            mu,
            n_sweeps=n_sweeps,
            n_pairs=self.n_pairs,
            few=same and self._last is not None and self._last.few,
        )
        return self._last
