"""`sparse_encode`: many signals, one dictionary, and exactly as many atoms as asked for.

Names and shapes are scikit-learn's: signals and atoms are rows.
"""

from __future__ import annotations

import time
import warnings
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from l0anneal._util.checks import check_integer, check_positive, check_verbose
from l0anneal._util.seeds import RandomState, check_same_seed, seed_of
from l0anneal.estimators.coding_blocks import PURSUIT, Atoms, warm_up_coding
from l0anneal.estimators.coding_dask import encode_dask
from l0anneal.estimators.coding_input import Signals, check_matrix, check_out, check_rank
from l0anneal.estimators.coding_stream import (
    Checkpoint,
    Dense,
    Output,
    Settings,
    Sparse,
    encode_signals,
)
from l0anneal.estimators.greedy_codes import has_time_for_gram
from l0anneal.problem.row_sources import is_dask
from l0anneal.samplers.run import OnInterrupt, Run

__all__ = ["sparse_encode"]

# Arguments of scikit-learn's function that have no meaning here, and what to do instead.
REFUSED = {
    "gram": "the Gram matrix of the atoms, scaled to unit norm, is computed here: leave it out",
    "cov": "products of atoms and signals are computed here: leave it out",
    "copy_cov": "there is no cov to copy: leave it out",
    "algorithm": "there is one algorithm, which improves on 'omp': leave it out, or use scikit-learn",
    "alpha": "there is no ℓ1 penalty: give n_nonzero_coefs, or tol for a squared error",
    "init": "a code starts from matching pursuit: leave it out",
    "max_iter": "the length of the search is n_kicks",
    "check_input": "signals and atoms are always checked: leave it out",
    "positive": "codes are least squares and can have any sign: use scikit-learn's lasso",
}
# Values of these arguments that ask for what is done here anyway.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "gram": (None,),
    "cov": (None,),
    "copy_cov": (True, False),
    "algorithm": ("omp",),
    "alpha": (None,),
    "init": (None,),
    "check_input": (True, False),
    "positive": (False,),
}
Floats = NDArray[np.float64]


@overload
def sparse_encode(
    X: ArrayLike,
    dictionary: ArrayLike,
    n_nonzero_coefs: int | None = None,
    *,
    return_finished: Literal[True],
    **options: Any,
) -> tuple[Any, NDArray[np.bool_]]: ...
@overload
def sparse_encode(
    X: ArrayLike,
    dictionary: ArrayLike,
    n_nonzero_coefs: int | None = None,
    **options: Any,
) -> Any: ...
def sparse_encode(
    X: ArrayLike,
    dictionary: ArrayLike,
    n_nonzero_coefs: int | None = None,
    *,
    tol: float | None = None,
    n_kicks: int = 10,
    pursuit_only: bool = False,
    out: Any = None,
    sparse_output: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    verbose: bool | int = False,
    on_interrupt: OnInterrupt = "raise",
    return_finished: bool = False,
    **unsupported: Any,
) -> Any:
    """Approximate each signal by ``n_nonzero_coefs`` atoms of a dictionary, or to a tolerance.

    Minimises ‖y − c D‖² over codes c with that many non-zeros, for each signal y by itself. A code
    starts from orthogonal matching pursuit. Then single atoms are exchanged as long as this lowers
    the error (a descent). After that, a few random atoms are exchanged at a time (a kick), each
    time followed by a descent, and the best code is kept. The error is never larger than that of
    orthogonal matching pursuit on the same atoms scaled to unit norm, apart from 1e-10 ‖y‖² and
    from the way in which exact ties are broken.

    Parameters
    ----------
    X : array of shape (n_signals, n_features)
        One signal per row. Memory maps, and other arrays on disk that have a shape, a dtype and slices
        of rows, are read in batches of some thousand signals and need not fit into memory. The codes
        of a Dask array are a lazy Dask array with the same chunks of signals.
    dictionary : array of shape (n_atoms, n_features)
        One atom per row, of any norm. Codes refer to the atoms as given, not to normalised ones. An
        atom that is zero is never used. The Gram matrix, of n_atoms² numbers, is computed once and
        held in memory.
    n_nonzero_coefs : int, optional
        k, at most the rank of the dictionary. By default, as in scikit-learn, a tenth of the number of
        features, at least one. A code has fewer non-zeros only if fewer atoms represent the signal up
        to rounding errors (a zero signal has a code of zeros), or if all other atoms are nearly linearly
        dependent on those in use. If ``tol`` is given, k is the largest number of non-zeros, and there
        is none by default.
    tol : float, optional
        Largest squared norm ‖y − c D‖² of the residual, as in `sklearn.linear_model.orthogonal_mp`. A
        code then has the fewest atoms that are found to reach it, never more than orthogonal matching
        pursuit needs. A signal whose squared norm is within the tolerance has a code of zeros. A signal
        that k atoms do not bring within the tolerance has the best code of k atoms. Residuals below
        1e-20 ‖y‖² are rounding errors and count as zero. The random numbers for each number of atoms are
        the same, so that a code within a tolerance is also the code of ``n_nonzero_coefs`` equal to its
        number of atoms.
    n_kicks : int
        Number of random kicks per signal. The time grows in proportion. With 0, the code is the
        result of the first descent.
    pursuit_only : bool
        Whether to leave out the descent and the kicks, for speed. The code is then that of a pursuit
        that adds, one by one, the atom that lowers the error most (order-recursive matching pursuit).
        Over many signals its error is below that of orthogonal matching pursuit, but not for every
        signal. With ``tol``, the codes are those of orthogonal matching pursuit.
    out : array of shape (n_signals, n_atoms), optional
        Where to write the codes, in double or single precision: an array, a memory map or another
        array on disk. If signals are read in batches, so are their codes written, and an error in a
        later batch, such as a signal that is not finite, leaves those of the batches before in
        ``out``.
    sparse_output : bool
        Whether to return the codes as a sparse matrix in the format CSR (`scipy.sparse.csr_array`).
    checkpoint : path, optional
        A directory for the codes of finished batches. If the run is ended in any way, the same call
        continues where it was, with the same result. A batch is found again by its signals, the
        dictionary, the seed and the parameters, so other calls can use the same directory. Needs an
        integer as ``random_state``. The directory can be deleted when the codes have been returned.
    time_limit : float, optional
        Wall-clock seconds of the whole call, without the compilation of kernels. Signals for which there
        is no more time keep the code of the pursuit, or of the best single atom if there is no time for
        the pursuit either, with a warning. A code depends on the seed and on its signal alone, so the
        finished codes are the same as without a limit.
    n_jobs : int, optional
        Number of threads (−1: all cores). The result does not depend on it.
    random_state : None, int, SeedSequence or Generator
        Seed of the random numbers; None draws a new one. The random numbers for a signal depend on
        the seed and on the signal alone, so that its code is the same to the last bit whichever
        other signals are encoded with it, in any order and for any ``n_jobs``.
    progress : bool
        Show a progress bar on stderr, which counts the signals.
    verbose : bool or int
        scikit-learn's word for the same: the bar is shown if either is true.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or return the codes. Unfinished signals then get
        the code of orthogonal matching pursuit, with a warning; a second Ctrl-C raises
        KeyboardInterrupt.
    return_finished : bool
        Also return a mask of the signals that were finished.
    **unsupported
        Other arguments of scikit-learn's function: values that ask for nothing else than what is done
        here, such as ``algorithm="omp"`` or ``gram=None``, are accepted; others raise TypeError, which
        says what to do instead.

    Returns
    -------
    codes : ndarray of shape (n_signals, n_atoms)
        Least squares on the atoms in use, zero elsewhere. With ``sparse_output`` a sparse matrix, with
        ``out`` that array, and for a Dask array a Dask array, all with the same numbers.
    finished : ndarray of bool of shape (n_signals,)
        False for signals whose search the time limit or Ctrl-C ended. Only returned if
        ``return_finished`` is true.

    See Also
    --------
    AnnealedSparseCoder : The same as a transformer.
    solve : One signal and more time.
    baselines.omp : Orthogonal matching pursuit.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import sparse_encode
    >>> rng = np.random.default_rng(0)
    >>> dictionary = rng.standard_normal((40, 16))
    >>> signals = 2.0 * dictionary[[3, 5]] - dictionary[[7, 11]]
    >>> codes = sparse_encode(signals, dictionary, 2, random_state=0)
    >>> [np.flatnonzero(code).tolist() for code in codes]
    [[3, 7], [5, 11]]
    >>> codes[0, [3, 7]].round(6).tolist()
    [2.0, -1.0]
    >>> codes = sparse_encode(signals + 0.1, dictionary, tol=0.2, random_state=0)
    >>> np.count_nonzero(codes, axis=1).tolist()
    [2, 2]

    Many signals are read from a file and their codes written to another, batch by batch:

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(os.path.join(folder, "signals.npy"), signals)
    ...     many = np.load(os.path.join(folder, "signals.npy"), mmap_mode="r")
    ...     out = np.lib.format.open_memmap(
    ...         os.path.join(folder, "codes.npy"), "w+", np.float64, shape=(2, 40)
    ...     )
    ...     codes = sparse_encode(many, dictionary, 2, out=out, random_state=0)
    ...     print(codes[0, [3, 7]].round(6).tolist())
    ...     codes = sparse_encode(many, dictionary, 2, sparse_output=True, random_state=0)
    ...     print(codes.indices.tolist())
    ...     del many, out
    [2.0, -1.0]
    [3, 7, 5, 11]
    """
    began = time.perf_counter()
    for name, value in unsupported.items():
        if any(
            value is same or (isinstance(value, str) and value == same)
            for same in NEUTRAL.get(name, ())
        ):
            continue
        why = REFUSED.get(name, "it is not known")
        raise TypeError(f"sparse_encode does not take {name!r}: {why}")
    D = check_matrix(dictionary, "dictionary", "(n_atoms, n_features)", 1)
    settings = _settings(D, n_nonzero_coefs, tol, n_kicks, pursuit_only)
    if out is not None and sparse_output:
        raise ValueError("out takes dense codes: give out or sparse_output=True, not both")
    if is_dask(X):
        if settings.tol is None:
            check_rank(settings.k, Atoms.of(D).unit)
        options = {
            "n_nonzero_coefs": n_nonzero_coefs,
            "tol": tol,
            "n_kicks": n_kicks,
            "pursuit_only": pursuit_only,
            "sparse_output": sparse_output,
            "n_jobs": n_jobs,
            "random_state": seed_of(random_state),
        }
        refused = {
            "out": out,
            "checkpoint": checkpoint,
            "time_limit": time_limit,
            "return_finished": return_finished,
        }
        return encode_dask(X, D, sparse_encode, options, refused)
    signals = Signals(X, D.shape[1])
    shape = len(signals), D.shape[0]
    if out is not None:
        check_out(out, shape, X)
    if checkpoint is not None:
        check_same_seed(random_state)
    with Run(
        time_limit=time_limit,
        n_jobs=n_jobs,
        random_state=random_state,
        progress=progress or check_verbose(verbose),
        on_interrupt=on_interrupt,
        unit="signal",
    ) as run:
        run.count_from(began)
        run.expect(len(signals) if tol is None else None)
        run.note("preparing the atoms")
        atoms = Atoms.of(D)
        has_gram = True
        if settings.k > 0 and len(signals) > 0:
            if settings.tol is None:
                check_rank(settings.k, atoms.unit)
            run.compile(warm_up_coding)
            has_gram = has_time_for_gram(run, atoms.unit)
        if signals.on_disk and out is None and checkpoint is None:
            for rows in signals.batches(len(atoms)):
                signals.read(rows)  # an error later would lose the codes of the batches before
        output: Output = Sparse(shape, settings.k) if sparse_output else Dense(shape, out)
        kept = None
        if checkpoint is not None:
            kept = Checkpoint(Path(checkpoint), D, run.seed, settings)
        finished = encode_signals(
            run, signals, atoms, settings, output, checkpoint=kept, has_gram=has_gram
        )
        interrupted = run.interrupted
    if not finished.all():
        why = "interrupted" if interrupted else "time limit"
        warnings.warn(
            f"{why}: {int(np.sum(~finished))} of {len(signals)} signals have codes of "
            f"{'orthogonal matching pursuit only' if tol is None else 'more atoms than may be needed'}",
            ConvergenceWarning,
            stacklevel=2,
        )
    codes = output.result()
    return (codes, finished) if return_finished else codes


def _settings(
    D: Floats,
    n_nonzero_coefs: int | None,
    tol: float | None,
    n_kicks: int,
    pursuit_only: bool,
) -> Settings:
    """Check the arguments that decide on the codes, and fill in their defaults."""
    if tol is not None:
        tol = check_positive("tol", tol, zero=True)
    k = None if n_nonzero_coefs is None else check_integer("n_nonzero_coefs", n_nonzero_coefs, 0)
    if k is None:
        k = max(1, D.shape[1] // 10) if tol is None else min(D.shape)
    elif tol is not None:
        k = min(k, *D.shape)
    n_kicks = check_integer("n_kicks", n_kicks, 0)
    return Settings(k, PURSUIT if pursuit_only else n_kicks, tol)
