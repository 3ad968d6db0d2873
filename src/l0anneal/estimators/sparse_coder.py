"""Sparse coding: many signals, one dictionary, and exactly as many atoms as asked for.

Names and shapes are scikit-learn's: signals and atoms are rows.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, Literal, Self, overload

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from l0anneal._util.checks import check_integer, check_positive, check_verbose
from l0anneal._util.seeds import RandomState
from l0anneal.estimators.coding_blocks import Atoms, Coding, encode_within, warm_up_coding
from l0anneal.estimators.greedy_codes import greedy_codes, has_time_for_gram
from l0anneal.samplers.run import OnInterrupt, Run

__all__ = ["AnnealedSparseCoder", "sparse_encode"]

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
Floats = NDArray[np.float64]


@overload
def sparse_encode(
    X: ArrayLike,
    dictionary: ArrayLike,
    n_nonzero_coefs: int | None = None,
    *,
    return_finished: Literal[True],
    **options: Any,
) -> tuple[Floats, NDArray[np.bool_]]: ...
@overload
def sparse_encode(
    X: ArrayLike,
    dictionary: ArrayLike,
    n_nonzero_coefs: int | None = None,
    **options: Any,
) -> Floats: ...
def sparse_encode(
    X: ArrayLike,
    dictionary: ArrayLike,
    n_nonzero_coefs: int | None = None,
    *,
    tol: float | None = None,
    n_kicks: int = 10,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
    verbose: bool | int = False,
    on_interrupt: OnInterrupt = "raise",
    return_finished: bool = False,
    **unsupported: Any,
) -> Floats | tuple[Floats, NDArray[np.bool_]]:
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
        One signal per row.
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
        Other arguments of scikit-learn's function raise TypeError, which says what to do instead.

    Returns
    -------
    codes : ndarray of shape (n_signals, n_atoms)
        Least squares on the atoms in use, zero elsewhere.
    finished : ndarray of bool of shape (n_signals,)
        False for signals whose search the time limit or Ctrl-C ended. Only returned if
        ``return_finished`` is true.

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
    """
    began = time.perf_counter()
    for name in unsupported:
        why = REFUSED.get(name, "it is not known")
        raise TypeError(f"sparse_encode does not take {name!r}: {why}")
    D = _check_matrix(dictionary, "dictionary", "(n_atoms, n_features)", 1)
    Y = _check_matrix(X, "signals", "(n_signals, n_features)", 0)
    if Y.shape[1] != D.shape[1]:
        raise ValueError(
            f"signals have {Y.shape[1]} features, but the atoms of the dictionary have {D.shape[1]}"
        )
    if tol is not None:
        tol = check_positive("tol", tol, zero=True)
    k = None if n_nonzero_coefs is None else check_integer("n_nonzero_coefs", n_nonzero_coefs, 0)
    if k is None:
        k = max(1, Y.shape[1] // 10) if tol is None else min(D.shape)
    elif tol is not None:
        k = min(k, *D.shape)
    n_kicks = check_integer("n_kicks", n_kicks, 0)
    with Run(
        time_limit=time_limit,
        n_jobs=n_jobs,
        random_state=random_state,
        progress=progress or check_verbose(verbose),
        on_interrupt=on_interrupt,
        unit="signal",
    ) as run:
        run.count_from(began)
        run.expect(Y.shape[0] if tol is None else None)
        run.note("preparing the atoms")
        codes, finished = np.zeros((Y.shape[0], D.shape[0])), np.ones(Y.shape[0], dtype=bool)
        if k > 0 and Y.shape[0] > 0:
            atoms = Atoms.of(D)
            if tol is None:
                _check_rank(k, atoms.unit)
            run.compile(warm_up_coding)
            if not has_time_for_gram(run, atoms.unit):
                greedy_codes(run, Y, atoms, k, codes, tol)
                finished[:] = False
            else:
                gram = np.ascontiguousarray(atoms.unit @ atoms.unit.T)
                if tol is None:
                    coding = Coding(run, Y, atoms, gram, k, n_kicks)
                    codes, finished = coding.codes, coding.run_all()
                else:
                    codes, finished = encode_within(run, Y, atoms, gram, k, n_kicks, tol)
        interrupted = run.interrupted
    if not finished.all():
        why = "interrupted" if interrupted else "time limit"
        warnings.warn(
            f"{why}: {int(np.sum(~finished))} of {Y.shape[0]} signals have codes of "
            f"{'orthogonal matching pursuit only' if tol is None else 'more atoms than may be needed'}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return (codes, finished) if return_finished else codes


class AnnealedSparseCoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Sparse coding against a fixed dictionary; it can replace `sklearn.decomposition.SparseCoder`.

    Signals become codes with ``transform_n_nonzero_coefs`` non-zeros, found by `sparse_encode`. Of the
    parameters of scikit-learn's class, ``transform_algorithm``, ``transform_alpha``,
    ``transform_max_iter`` and ``positive_code`` have no meaning here, because there is no penalty.

    Parameters
    ----------
    dictionary : array of shape (n_atoms, n_features)
        One atom per row, of any norm.
    transform_n_nonzero_coefs : int, optional
        Number of non-zeros per code; by default a tenth of the number of features, at least one, or as
        many as are needed if ``transform_tol`` is given.
    transform_tol : float, optional
        Largest squared norm of the residual of a signal; see ``tol`` of `sparse_encode`.
    n_kicks : int
        Number of random kicks per signal; see `sparse_encode`.
    split_sign : bool
        Whether to return the positive and the negative parts of the codes as separate columns.
    n_jobs : int, optional
        Number of threads (−1: all cores). The result does not depend on it.
    random_state : None, int, SeedSequence or Generator
        By default 0, so that the same signal always has the same code. None gives a fresh seed to
        each call of ``transform``.
    time_limit : float, optional
        Wall-clock time of each call of ``transform`` in seconds; see `sparse_encode`.
    progress : bool
        Show a progress bar on stderr, which counts the signals.
    verbose : bool or int
        scikit-learn's word for the same: the bar is shown if either is true.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does; see `sparse_encode`.

    Attributes
    ----------
    n_components_ : int
        Number of atoms.
    n_features_in_ : int
        Number of features seen by ``fit``, which learns nothing else.
    feature_names_in_ : ndarray of str
        Names of the features seen by ``fit``, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from l0anneal import AnnealedSparseCoder
    >>> rng = np.random.default_rng(0)
    >>> dictionary = rng.standard_normal((40, 16))
    >>> signals = dictionary[:5] + dictionary[5:10]
    >>> coder = AnnealedSparseCoder(dictionary, transform_n_nonzero_coefs=2)
    >>> codes = coder.fit_transform(signals)
    >>> bool(np.allclose(coder.inverse_transform(codes), signals))
    True
    """

    def __init__(
        self,
        dictionary: ArrayLike,
        *,
        transform_n_nonzero_coefs: int | None = None,
        transform_tol: float | None = None,
        n_kicks: int = 10,
        split_sign: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
        time_limit: float | None = None,
        progress: bool = False,
        verbose: bool | int = False,
        on_interrupt: OnInterrupt = "raise",
    ) -> None:
        self.dictionary = dictionary
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.transform_tol = transform_tol
        self.n_kicks = n_kicks
        self.split_sign = split_sign
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.time_limit = time_limit
        self.progress = progress
        self.verbose = verbose
        self.on_interrupt = on_interrupt

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Check that the signals have as many features as the atoms; there is nothing to learn."""
        self._check_signals(X, reset=True)
        self.n_components_ = np.shape(self.dictionary)[0]
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Return the codes of the signals, of shape (n_signals, n_atoms).

        With ``split_sign`` there are twice as many columns. Codes are computed in double precision
        and returned in the precision of X.
        """
        Y = self._check_signals(X, reset=False)
        codes = sparse_encode(
            Y,
            self.dictionary,
            self.transform_n_nonzero_coefs,
            tol=self.transform_tol,
            n_kicks=self.n_kicks,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            time_limit=self.time_limit,
            progress=self.progress,
            verbose=self.verbose,
            on_interrupt=self.on_interrupt,
        )
        if self.split_sign:
            codes = np.hstack((np.maximum(codes, 0.0), np.maximum(-codes, 0.0)))
        return codes.astype(Y.dtype, copy=False)

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Return the signals that codes stand for: codes times dictionary."""
        codes = check_array(X, dtype=[np.float64, np.float32])
        if codes.shape[1] != self._n_features_out:
            raise ValueError(
                f"codes need {self._n_features_out} columns, one per atom"
                f"{' and sign' if self.split_sign else ''}; got {codes.shape[1]}"
            )
        dictionary = np.asarray(self.dictionary, dtype=codes.dtype)
        if self.split_sign:
            positive, negative = np.hsplit(codes, 2)
            codes = positive - negative
        return codes @ dictionary

    def _check_signals(self, X: ArrayLike, reset: bool) -> NDArray[np.floating]:
        Y: NDArray[np.floating] = validate_data(
            self, X, dtype=[np.float64, np.float32], reset=reset
        )
        shape = np.shape(self.dictionary)
        if len(shape) != 2 or shape[1] != Y.shape[1]:
            raise ValueError(
                f"dictionary has shape {shape}, but signals with {Y.shape[1]} features need "
                f"(n_atoms, {Y.shape[1]})"
            )
        return Y

    @property
    def _n_features_out(self) -> int:
        return int(np.shape(self.dictionary)[0]) * (2 if self.split_sign else 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# ---------------------------------------------------------------- checks and preparation


def _check_matrix(values: ArrayLike, name: str, shape: str, least_rows: int) -> Floats:
    if scipy.sparse.issparse(values):
        raise ValueError(f"{name} must be a dense array; got a sparse matrix: give its toarray()")
    M = np.asarray(values)
    if M.ndim != 2:
        raise ValueError(f"{name} must be a matrix of shape {shape}; got shape {M.shape}")
    if M.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers; got dtype {M.dtype}")
    if M.shape[0] < least_rows or M.shape[1] < 1:
        raise ValueError(f"{name} of shape {M.shape} is empty; the shape is {shape}")
    M = np.ascontiguousarray(M, dtype=np.float64)
    if not np.isfinite(M).all():
        raise ValueError(f"{name} contains NaN or infinity; it needs finite numbers")
    return M


def _check_rank(k: int, atoms: Floats) -> None:
    """Raise ValueError if k exceeds the rank of the dictionary."""
    n_atoms, n_features = atoms.shape
    few = atoms[: 2 * k + 10]
    if len(few) < n_atoms and np.linalg.matrix_rank(few) >= k:
        return  # without the singular values of a large dictionary
    rank = int(np.linalg.matrix_rank(atoms))
    if k > rank:
        raise ValueError(
            f"n_nonzero_coefs = {k} exceeds the rank of the dictionary ({n_atoms} atoms of "
            f"{n_features} features), which is {rank}: no {k} atoms are linearly independent"
        )
