"""`AnnealedSparseCoder`: scikit-learn's interface to `sparse_encode`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from l0anneal._util.seeds import RandomState
from l0anneal.estimators.encoding import sparse_encode
from l0anneal.samplers.run import OnInterrupt

__all__ = ["AnnealedSparseCoder", "sparse_encode"]


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
    pursuit_only : bool
        Whether to leave out the search and return the codes of a pursuit, for speed; see
        `sparse_encode`.
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

    See Also
    --------
    sparse_encode : The same as a function.

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
        pursuit_only: bool = False,
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
        self.pursuit_only = pursuit_only
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
            pursuit_only=self.pursuit_only,
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
