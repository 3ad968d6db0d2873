"""The ways to make a problem from rows that do not fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, Self

from l0anneal.problem.from_statistics import FromStatistics
from l0anneal.problem.gram import Rounding
from l0anneal.problem.row_blocks import labelled, sum_rows
from l0anneal.problem.row_query import sum_query
from l0anneal.problem.row_sources import sum_dask, sum_parquet
from l0anneal.problem.row_sums import RowSums

__all__ = ["FromRows"]


class FromRows(FromStatistics):
    """The part of `SparseProblem` that reads rows once and keeps only sums of products."""

    column_means: Any
    signal_mean: float
    intercept: bool | None
    feature_names: tuple[str, ...] | None

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[Any],
        *,
        intercept: bool = True,
        feature_names: Sequence[str] | None = None,
        n_columns: int | None = None,
    ) -> Self:
        """Make a problem from blocks of rows, which are read once and not kept.

        Memory is needed for one block and for a few matrices of shape (N, N). The sums are those of
        deviations from the means, so that large offsets cost no digits, and they do not depend on how
        the rows are divided into blocks.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, weights)
            The blocks: X of shape (rows, N), an array, sparse matrix or DataFrame, and y of shape
            (rows,). A row of weight 2 counts as two rows. If the iterable raises an exception, a note
            on it says how many rows had been read.
        intercept : bool
            Whether to fit an intercept.
        feature_names : sequence of str, optional
            Names of the columns; by default those of the first block, if it is a DataFrame.
        n_columns : int, optional
            N, if the first block is to be checked too.

        Returns
        -------
        SparseProblem
            Without A and y, as from `from_gram`, but with the means that were subtracted.

        Raises
        ------
        ValueError
            If a block has NaN or infinity, another number of columns, a y of another length or
            negative weights; the message says in which block, row and column.

        Examples
        --------
        >>> import numpy as np
        >>> from l0anneal import SparseProblem, solve
        >>> def blocks():
        ...     rng = np.random.default_rng(0)
        ...     for _ in range(10):
        ...         X = rng.standard_normal((1000, 20))
        ...         yield X, 3.0 + X[:, 4] - X[:, 7] + rng.standard_normal(1000)
        >>> problem = SparseProblem.from_blocks(blocks())
        >>> result = solve(problem, 2, random_state=0)
        >>> problem.n_samples, result.support, round(result.intercept, 1)
        (9999, array([4, 7]), 3.0)
        """
        sums = sum_rows(labelled(blocks), names=feature_names, n_columns=n_columns)
        return cls._from_sums(sums, intercept)

    @classmethod
    def from_dask(
        cls,
        data: Any,
        target: Any,
        *,
        columns: Sequence[str] | None = None,
        weights: Any = None,
        intercept: bool = True,
    ) -> Self:
        """Make a problem from a Dask array or data frame, whose partitions are added up in parallel.

        It needs Dask: ``pip install 'l0anneal[cluster]'``.

        Parameters
        ----------
        data : dask.array.Array of shape (M, N) or dask.dataframe.DataFrame
            The rows.
        target : str, or Dask array or series
            The column of the data frame to explain, or y with the same partitions as the data.
        columns : list of str, optional
            The columns of the data frame to choose from; by default all others.
        weights : str, or Dask array or series, optional
            Weights of the rows, given like the target.
        intercept : bool
            Whether to fit an intercept.

        Returns
        -------
        SparseProblem
            As from `from_blocks`.

        Examples
        --------
        >>> import dask.array as da
        >>> from l0anneal import SparseProblem
        >>> X = da.arange(3000, chunks=1000).reshape(1000, 3) % 7
        >>> SparseProblem.from_dask(X, X[:, 0] + 1)
        SparseProblem(AᵀA, n_samples=999, n_columns=3)
        """
        return cls._from_sums(sum_dask(data, target, columns=columns, weights=weights), intercept)

    @classmethod
    def from_parquet(
        cls,
        path: str | PathLike[str] | Sequence[str | PathLike[str]],
        target: str,
        *,
        columns: Sequence[str] | None = None,
        weights: str | None = None,
        batch_size: int = 65536,
        intercept: bool = True,
    ) -> Self:
        """Make a problem from Parquet files, which are read in batches.

        It needs pyarrow: ``pip install 'l0anneal[tables]'``.

        Parameters
        ----------
        path : path or list of paths
            A file, a folder of .parquet files, which are read in the order of their names, or a list.
        target : str
            The column to explain.
        columns : list of str, optional
            The columns to choose from; by default all others.
        weights : str, optional
            The column that has the weights of the rows.
        batch_size : int
            The number of rows in a batch.
        intercept : bool
            Whether to fit an intercept.

        Returns
        -------
        SparseProblem
            As from `from_blocks`.

        Raises
        ------
        ValueError
            If a file is damaged, lacks a column, or has missing values; the message names the file.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import pandas
        >>> from l0anneal import SparseProblem
        >>> frame = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0, 1, 0], "y": [1.0, 2.0, 3.0]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     frame.to_parquet(pathlib.Path(folder) / "rows.parquet")
        ...     problem = SparseProblem.from_parquet(folder, "y")
        >>> problem.feature_names
        ('a', 'b')
        """
        sums = sum_parquet(path, target, columns=columns, weights=weights, batch_size=batch_size)
        return cls._from_sums(sums, intercept)

    @classmethod
    def from_sql(
        cls,
        connection: Any,
        query: str,
        target: str,
        *,
        columns: Sequence[str] | None = None,
        weights: str | None = None,
        intercept: bool = True,
    ) -> Self:
        """Make a problem from a table or a query of DuckDB, which adds up the products itself.

        Two aggregate queries give the means and the sums of products of deviations from them; no row
        leaves the database. With more than about 60 columns the second query is divided into several.
        Opening a database by its path needs DuckDB: ``pip install 'l0anneal[sql]'``.

        Parameters
        ----------
        connection : duckdb.DuckDBPyConnection or path
            A connection, or the path of a database file.
        query : str
            The name of a table or view, or a query that starts with SELECT, WITH, FROM or VALUES.
        target : str
            The column to explain.
        columns : list of str, optional
            The columns to choose from; by default all others.
        weights : str, optional
            The column that has the weights of the rows.
        intercept : bool
            Whether to fit an intercept.

        Returns
        -------
        SparseProblem
            As from `from_blocks`.

        Examples
        --------
        >>> import duckdb  # doctest: +SKIP
        >>> from l0anneal import SparseProblem
        >>> connection = duckdb.connect("houses.db")  # doctest: +SKIP
        >>> SparseProblem.from_sql(connection, "houses", "price")  # doctest: +SKIP
        """
        sums = sum_query(connection, query, target, columns=columns, weights=weights)
        return cls._from_sums(sums, intercept)

    @classmethod
    def _from_sums(cls, sums: RowSums, intercept: bool) -> Self:
        moments = sums.total()
        found = moments.statistics(bool(intercept))
        self = cls.__new__(cls)
        n_samples = max(1, round(moments.weight) - bool(intercept))
        rounding = Rounding.of(found.gram, found.correlation)
        self._set_statistics(
            found.gram, found.correlation, found.signal_energy, n_samples, rounding
        )
        self.intercept, self.feature_names = bool(intercept), sums.names
        if intercept:
            self.column_means, self.signal_mean = found.column_means, found.signal_mean
        return self
