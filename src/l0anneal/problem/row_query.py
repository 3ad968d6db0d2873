"""Sums over the rows of a table in a database, by aggregate queries of DuckDB.

A first query counts rows and finds the means. A second one adds up the products of the deviations from
these means, with compensated sums, so that no row leaves the database.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from l0anneal.problem.moments import Moments
from l0anneal.problem.row_sources import Roles
from l0anneal.problem.row_sums import RowSums

__all__ = ["sum_query"]

MOST_SUMS = 2000  # in one query, which DuckDB would take long to plan with more
NUMBERS = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|BOOLEAN|DECIMAL.*)$")


def sum_query(
    connection: Any,
    query: str,
    target: str,
    *,
    columns: Sequence[str] | None = None,
    weights: str | None = None,
) -> RowSums:
    """Add up the rows of a table, of a view or of the result of a query."""
    if not isinstance(connection, (str, PathLike)):
        return _Query(connection, query, target, columns, weights).sums()
    try:
        import duckdb
    except ImportError:
        raise ImportError("from_sql needs DuckDB: pip install 'l0anneal[sql]'") from None
    with duckdb.connect(str(connection), read_only=True) as opened:
        return _Query(opened, query, target, columns, weights).sums()


class _Query:
    """The queries for one table."""

    def __init__(
        self,
        connection: Any,
        query: str,
        target: str,
        columns: Sequence[str] | None,
        weights: str | None,
    ) -> None:
        if not hasattr(connection, "execute"):
            raise ValueError(
                "connection must be a connection of DuckDB or the path of a database; got "
                f"{type(connection).__name__}: give duckdb.connect(...)"
            )
        self.connection = connection
        query = query.strip().rstrip(";")
        is_query = re.match(r"(select|with|from|values)\b", query, re.I) or query.startswith("(")
        self.source = f"({query})" if is_query else ".".join(map(_quoted, query.split(".")))
        described = self.rows(f"DESCRIBE SELECT * FROM {self.source} AS t")
        kinds = {str(row[0]): str(row[1]) for row in described}
        self.roles = Roles.of(
            list(kinds), "the result" if is_query else query, target, columns, weights
        )
        for name in self.roles.all:
            if not NUMBERS.match(kinds[name]):
                raise ValueError(
                    f"column {name!r} has the type {kinds[name]}, but numbers are needed: give the "
                    "columns of numbers as columns, or cast it in the query"
                )
        self.names = [*self.roles.columns, self.roles.target]
        self.cells = [f"CAST({_quoted(name)} AS DOUBLE)" for name in self.names]
        self.weight = None
        if weights is not None:
            self.weight = f"CAST({_quoted(weights)} AS DOUBLE)"

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return list(self.connection.execute(sql).fetchall())

    def one(self, expressions: list[str], where: str = "") -> tuple[Any, ...]:
        """Return the only row of an aggregate query."""
        return self.rows(f"SELECT {', '.join(expressions)} FROM {self.source} AS t {where}")[0]

    def sums(self) -> RowSums:
        self._check_values()
        w = self.weight
        where = "" if w is None else f"WHERE {w} > 0"
        times = "" if w is None else f"{w} * "
        y = self.cells[-1]
        head = self.one(
            [
                "count(*)",
                "count(*)" if w is None else f"fsum({w})",
                f"min({y})",
                f"max({y})",
                f"bool_and({y} = 0 OR {y} = 1)",
                *(f"fsum({times}{cell})" for cell in self.cells),
            ],
            where,
        )
        n_rows, total = int(head[0]), head[1]
        if not n_rows:
            raise ValueError(
                "the query has no rows, or none of positive weight; at least one is needed"
            )
        shift = np.array(head[5:], dtype=np.float64) / float(total)
        left = [f"({cell} - {_literal(c)})" for cell, c in zip(self.cells, shift)]
        n = len(left)
        pairs = [(i, j) for i in range(n) for j in range(i, n)]
        expressions = [f"fsum({times}{one})" for one in left]
        expressions += [f"fsum({times}{left[i]} * {left[j]})" for i, j in pairs]
        found: list[float] = []
        for start in range(0, len(expressions), MOST_SUMS):
            some = self.one(["count(*)", *expressions[start : start + MOST_SUMS]], where)
            if some[0] != n_rows:
                raise ValueError(
                    f"the table changed between two queries, from {n_rows} to {some[0]} rows: read it "
                    "inside a transaction"
                )
            found += some[1:]
        offset = np.array(found[:n]) / float(total)
        scatter = np.zeros((n, n))
        upper = tuple(np.array(pairs).T)
        scatter[upper] = found[n:]
        scatter = np.triu(scatter) + np.triu(scatter, 1).T
        moments = Moments(
            n_rows,
            float(total),
            shift,
            offset,
            scatter,
            np.zeros((n, n)),
            np.zeros(n, dtype=bool),
            float(head[2]),
            float(head[3]),
            bool(head[4]),
        )
        sums = RowSums((moments,), self.roles.columns)
        sums.check_range()
        return sums

    def _check_values(self) -> None:
        """Raise ValueError if a column has missing or infinite values, or a weight is negative."""
        cells = [*self.cells, *([] if self.weight is None else [self.weight])]
        bad = [f"count(*) FILTER (WHERE {c} IS NULL OR NOT isfinite({c}))" for c in cells]
        lowest = "0" if self.weight is None else f"min({self.weight})"
        *counts, least = self.one([*bad, lowest])
        for name, n in zip(self.roles.all, counts):
            if n:
                raise ValueError(
                    f"column {name!r} has {n} values that are NULL, NaN or infinite; finite numbers are "
                    f"needed: add WHERE isfinite({_quoted(name)}) to the query"
                )
        if least is not None and least < 0:
            raise ValueError(f"weights must be ≥ 0; the smallest is {least:g}")


def _quoted(name: str) -> str:
    name = name.strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        return name
    return '"' + name.replace('"', '""') + '"'


def _literal(value: float) -> str:
    """Return a number as SQL for exactly this double."""
    return f"CAST('{float(value)!r}' AS DOUBLE)"
