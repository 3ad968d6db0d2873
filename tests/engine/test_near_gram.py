"""Copies of parts of the Gram matrix: they are equal to it, and change no decision of a kernel."""

import numpy as np
import pytest
import scipy.sparse

from l0anneal import SparseProblem
from l0anneal.engine.moves import new_tally
from l0anneal.engine.moves.evidence_flip_direct import evidence_flip_direct
from l0anneal.engine.moves.protocol import ACCEPTED
from l0anneal.engine.near_gram import gram_between, lay_out
from l0anneal.engine.rng import stream
from l0anneal.engine.tableau import STALE
from l0anneal.engine.workspace import Workspace
from l0anneal.problem import scaled
from l0anneal.samplers.evidence.proposal import Proposal


def dictionaries():
    rng = np.random.default_rng(5)
    shapes = {"tall": (60, 20), "square": (30, 30), "wide": (25, 90), "tiny": (3, 4)}
    for name, shape in shapes.items():
        yield name, rng.standard_normal(shape)
    yield "sparse", scipy.sparse.random_array((40, 70), density=0.2, rng=rng, format="csc")
    yield "badly scaled", rng.standard_normal((40, 60)) * 10.0 ** rng.uniform(-8, 8, 60)
    A = rng.standard_normal((40, 60))
    A[:, 30:] = A[:, :30] + 1e-3 * rng.standard_normal((40, 30))
    yield "nearly equal columns", A


PROBLEMS = dict(dictionaries())


@pytest.fixture(params=PROBLEMS)
def problem(request, monkeypatch):
    """A problem of which rows of the Gram matrix are computed one by one."""
    monkeypatch.setattr(scaled, "WHOLE_GRAM_BYTES", 0)
    A = PROBLEMS[request.param]
    rng = np.random.default_rng(6)
    weights = rng.standard_normal(A.shape[1]) * (rng.random(A.shape[1]) < 0.1)
    problem = SparseProblem(A, A @ weights + np.max(np.abs(A)) * rng.standard_normal(A.shape[0]))
    problem.make_ready()
    return problem


def walk(problem, copies, n_parts=30):
    """Make proposals in parts; return the workspace and the supports and energies in between.

    With ``copies``, rows of columns that stay are held and laid out between the parts. Without, nothing
    is remembered from one part to the next.
    """
    n = problem.n_columns
    w = Workspace(problem, min(n, 16), ridge=0.0)
    w.set_ridge(0.5)
    state, before, seen = stream(np.random.SeedSequence(1)), np.zeros(0, dtype=np.int64), []
    accepted = 0
    for part in range(n_parts):
        tally = new_tally()
        prior = (np.full(n + 1, -0.5), np.zeros(n), *Proposal.of(np.ones(n)))
        law = (4.0, problem.unit_signal, 0.0, np.log(0.5), *prior, 0.0, np.zeros(n), n)
        if copies:
            if part % 3 == 1:
                w.bring_support(before)
            if part % 7 == 6:
                w.complete()
            lay_out(w.tableau, before)
            before = w.inside_columns.copy()
        else:
            w.tableau.known[:] = -1
        w.run(evidence_flip_direct, state, *law, 60, tally)
        accepted += tally[ACCEPTED]
        seen.append((w.support.tolist(), w.unit_energy))
    assert accepted > 20
    return w, seen


def test_copies_change_no_decision(problem):
    _, plain = walk(problem, copies=False)
    w, copied = walk(problem, copies=True)
    assert [support for support, _ in copied] == [support for support, _ in plain]
    energies = np.array([[a[1], b[1]] for a, b in zip(copied, plain, strict=True)])
    np.testing.assert_allclose(energies[:, 0], energies[:, 1], rtol=0, atol=1e-9)
    assert w.tableau.counts[STALE]


def test_copies_are_the_gram_matrix(problem):
    """Those of columns that have a place, whose row is held, and that have neither."""
    w, _ = walk(problem, copies=True)
    t, inside = w.tableau, w.inside_columns
    every = np.arange(problem.n_columns)
    gram = problem.gram_of(every)
    w.hold_rows(inside[1:2])
    t.place[inside[:2]] = -1
    t.row_of[inside[:1]] = -1
    for i in np.flatnonzero(t.place >= 0):
        np.testing.assert_allclose(t.W[:, t.place[i]], gram[i], atol=1e-12)
    np.testing.assert_allclose(w.gram_inside(), gram[np.ix_(inside, inside)], atol=1e-12)
    np.testing.assert_array_equal(t.known[: w.size], inside)
    if problem.holds_unit_columns:
        between = gram_between(t, inside, every, problem.unit_columns)
        np.testing.assert_allclose(between, gram[inside], atol=1e-12)


def test_a_column_that_comes_back_is_computed_again(problem):
    """What is known of a slot is forgotten while no kernel that keeps it up to date runs."""
    w, _ = walk(problem, copies=True)
    w.complete()
    columns = w.support
    for j in columns[columns.size // 2 :]:
        w.remove(int(j))
    for j in w.problem.check_support(np.arange(min(3, problem.n_columns))):
        if j in w.outside_columns and w.size < w.tableau.inside.size:
            w.add(int(j))
    inside = w.inside_columns
    gram = problem.gram_of(inside)
    np.testing.assert_allclose(w.gram_inside(), gram, atol=1e-12)
