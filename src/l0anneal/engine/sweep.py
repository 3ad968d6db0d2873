"""The loop over proposals that every sampler on a workspace shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l0anneal.engine.kernel_choice import KERNELS, pair_acceptance
from l0anneal.engine.moves.outcome import ACCEPTED, PROPOSED, new_tally
from l0anneal.engine.workspace import Workspace

__all__ = ["Mover", "Sweeps"]


class Sweeps:
    """Sweeps of N proposals of one kernel, at one temperature.

    A kernel runs for at most `Workspace.chunk` proposals at a time, some hundredths of a second, so that
    ``workspace.pause`` can stop the run in between. Cutting a run into chunks changes no number.

    Parameters
    ----------
    workspace : Workspace
        The support to be moved.
    kernel : callable
        A move; called as ``kernel(tableau, state, *law, stop, [energies,] tally)``.
    state : uint64 array
        The random stream.
    *law : arguments
        What the kernel takes between the stream and ``stop``: the inverse temperature and the like.
    n_sweeps : int
        How many sweeps.
    record : bool
        Whether the kernel takes an array for the energies after each sweep.
    n_pairs : int
        For `multi_flip`: how many columns it exchanges at once at most.

    Attributes
    ----------
    energies : ndarray of shape (n_sweeps,)
        After each sweep, in the engine's units, counted from the empty support.
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
    ) -> None:
        self.workspace, self.kernel, self.n_sweeps = workspace, kernel, n_sweeps
        self.before = (state, *law)
        self.tally = new_tally(n_pairs)
        self.energies = np.zeros(n_sweeps)
        self.after = (self.energies, self.tally) if record else (self.tally,)

    def each(self) -> Iterator[int]:
        """Run sweep by sweep; yield the number of sweeps done so far after each."""
        for done in range(1, self.n_sweeps + 1):
            self._run(done)
            yield done

    def all(self, progress: Callable[[int], object] = lambda n: None) -> None:
        """Run all sweeps without a stop after each; ``progress`` hears how many were added."""
        self._run(self.n_sweeps, progress)

    @property
    def acceptance(self) -> float:
        """Fraction of the proposals that were accepted."""
        return float(self.tally[ACCEPTED] / max(1, self.tally[PROPOSED]))

    def _run(self, n_sweeps: int, progress: Callable[[int], object] = lambda n: None) -> None:
        workspace, n_columns = self.workspace, self.workspace.problem.n_columns
        end = n_sweeps * n_columns
        while self.tally[PROPOSED] < end:
            before = int(self.tally[PROPOSED])
            stop = min(end, before + workspace.chunk)
            workspace.run(self.kernel, *self.before, stop, *self.after)
            workspace.pause()
            progress(int(self.tally[PROPOSED]) // n_columns - before // n_columns)


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
        self.kernel = self.workspace.choose_kernel(self.move, acceptance)
        self._last = Sweeps(
            self.workspace,
            KERNELS[self.kernel],
            self.state,
            mu,
            n_sweeps=n_sweeps,
            n_pairs=self.n_pairs,
        )
        return self._last
