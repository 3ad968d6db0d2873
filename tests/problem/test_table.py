"""Tables: readers, names, saved indices, dummies, missing values, and the problems made of them."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from l0anneal import SparseProblem
from l0anneal._util.advice import as_options, option
from l0anneal.problem.centring import centre, constant_share
from l0anneal.problem.files import read_named_matrix
from l0anneal.problem.table import as_table, read_table
from l0anneal.problem.table_cells import as_column
from l0anneal.problem.table_text import read_text_table


def text_table(folder, text, name="t.csv", **options):
    (folder / name).write_text(text, encoding="utf-8")
    return read_text_table(folder / name, **options)


@pytest.mark.parametrize(
    ("text", "names", "n_rows"),
    [
        ("a,b\n1,2\n3,4\n", ("a", "b"), 2),
        ("1.5,2\n3,4\n", None, 2),
        ("0,1\n0.5,1.5\n", ("0", "1"), 1),  # a numeric header, as pandas writes it
        ("0,1\n1,0\n", None, 2),  # integers like all the others
        ("0,1,2,3\n4,5,6,7\n", ("0", "1", "2", "3"), 1),
        (",0,1\n0,5,7\n", ("", "0", "1"), 1),
        ("0\n1.5\n", ("0",), 1),
        ("# a,b\n1,2\n", ("a", "b"), 1),
        ("# made by somebody\n1,2\n", None, 1),
        ("a b\n1\n2\n", ("a b",), 2),
        ("a,b\n1,2,3\n4,5,6\n", ("", "a", "b"), 2),  # as R writes row names
        ("a,b,\n1,2,\n3,4,\n", ("a", "b"), 2),
        ("5.1,setosa\n4.9,setosa\n", None, 2),
        ("id,2019\nx,1\ny,2\n", ("id", "2019"), 2),
        ('"a, with a comma";b\n1;2\n', ("a, with a comma", "b"), 1),
        ("a\tb\n1\t2\n", ("a", "b"), 1),
        ("a  b\n 1 2\n10 3\n", ("a", "b"), 2),  # as pandas prints it
        ('"a" "b"\n"1" 2 3\n"2" 4 5\n', ("", "a", "b"), 2),  # as R's write.table
        ("a city\nNew York\nLos Angeles\n", ("a city",), 2),
        ("\n\na,b\n\n1,2\n\n", ("a", "b"), 1),
        ("\ufeffa,b\n1,2\n", ("a", "b"), 1),
        ('a,b\n"two\nlines",2\n', ("a", "b"), 1),
    ],
)
def test_separator_and_header_are_found_out(tmp_path, text, names, n_rows):
    table = text_table(tmp_path, text)
    assert table.names == names
    assert {len(column) for column in table.columns} == {n_rows}


def test_a_header_can_be_stated(tmp_path):
    assert text_table(tmp_path, "0,1\n1,0\n", header=True).names == ("0", "1")
    assert text_table(tmp_path, "0,1,2,3\n4,5,6,7\n", header=False).names is None
    guessed = text_table(tmp_path, "0,1\n1,0\n")
    assert "give header=True" in guessed.notes[0]
    assert "give header=False" in text_table(tmp_path, "0,1\n1.5,0.5\n").notes[0]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1", " 2.5 ", "-3e2"], [1.0, 2.5, -300.0]),
        (["1", "", "NA", "?", "nan", "NULL"], [1.0] + [np.nan] * 5),
        (["True", "false"], [1.0, 0.0]),
        ([True, None, 3], [1.0, np.nan, 3.0]),
        (pd.Series([1, None, 3], dtype="Int64"), [1.0, np.nan, 3.0]),
        (pd.Series([1.5, 2.5], dtype="float32"), [1.5, 2.5]),
        (pd.Series(["4", "5"], dtype="string"), [4.0, 5.0]),
        (pd.Series(pd.Categorical([2, 1])), [2.0, 1.0]),
    ],
)
def test_numbers_are_recognised(cells, numbers):
    np.testing.assert_array_equal(as_column(cells), numbers)


def test_words_are_not_numbers():
    assert as_column(["1", "two", None]).tolist() == ["1", "two", None]
    assert as_column(["1,5", "2"]).tolist() == ["1,5", "2"]
    np.testing.assert_array_equal(as_column(["1,5", "2"], decimal_comma=True), [1.5, 2.0])
    assert as_column(pd.to_datetime(pd.Series(["2020-01-01"]))).dtype == object


@pytest.mark.parametrize(
    ("frame", "index"),
    [
        ({"Unnamed: 0": [0, 1, 2], "a": [1, 2, 4]}, "Unnamed: 0"),
        ({"": [7, 3, 5], "a": [1, 2, 4]}, "Unnamed: 0"),
        ({"": ["x", "y", "z"], "a": [1, 2, 4]}, "Unnamed: 0"),
        ({"id": [1, 2, 3], "a": [1, 2, 4]}, "id"),
        ({"id": [1, 5, 3], "a": [1, 2, 4]}, None),
        ({"id": [101, 102, 103], "a": [1, 2, 4]}, "id"),
        ({"time": [0, 1, 2], "a": [1, 2, 4]}, None),
        ({"": [0.5, 1.5, 2.5], "a": [1, 2, 4]}, None),
        ({"a": [1, 2, 4], "": [0, 1, 2]}, None),
    ],
)
def test_a_saved_index_is_found(frame, index):
    table = as_table(frame)
    assert table.index == index
    assert bool(table.notes) == (index is not None)


def test_data_frames_of_all_kinds_are_the_same_table():
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan]})
    for same in (frame, dict(frame), as_table(frame), Polars(frame)):
        table = as_table(same)
        assert table.names == ("a", "b")
        np.testing.assert_array_equal(table["b"], [0.5, np.nan])
    with pytest.raises(ValueError, match=r"got ndarray: for an array without names"):
        as_table(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="all columns need the same length"):
        as_table({"a": [1, 2], "b": [1]})


class Polars:
    """A data frame with names and columns, but without iloc."""

    def __init__(self, frame):
        self.frame, self.columns = frame, list(frame.columns)

    def __getitem__(self, name):
        return self.frame[name].to_numpy()


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".xlsx"])
def test_a_missing_reader_is_named(tmp_path, monkeypatch, suffix):
    (tmp_path / f"t{suffix}").write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match=rf"to read {suffix}, install pandas and \w+: pip install"):
        read_table(tmp_path / f"t{suffix}")


def test_text_needs_no_pandas(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n2,4\n3,7\n")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert SparseProblem.from_table(tmp_path / "t.csv", "y").feature_names == ("a",)


def test_a_matrix_in_a_text_file_has_names(tmp_path):
    (tmp_path / "A.csv").write_text(",a,b\n0,1,2\n1,3,4\n")
    with pytest.warns(UserWarning, match="left out as a saved index"):
        matrix = read_named_matrix(tmp_path / "A.csv")
    assert matrix.names == ("a", "b")
    np.testing.assert_array_equal(matrix.A, [[1, 2], [3, 4]])


# ------------------------------------------------------------ problems


def data(n=50, seed=0):
    rng = np.random.default_rng(seed)
    frame = {"a": rng.uniform(5, 9, n), "b": rng.standard_normal(n), "w": rng.integers(0, 3, n)}
    frame["y"] = 40 + 3 * frame["a"] + 0.1 * rng.standard_normal(n)
    return frame


def test_the_intercept_is_that_of_least_squares():
    frame = data()
    problem = SparseProblem.from_table(frame, "y", columns=["a", "b"])
    coef, energy = problem.least_squares([0, 1])
    X = np.column_stack([np.ones(50), frame["a"], frame["b"]])
    expected, rss, *_ = np.linalg.lstsq(X, frame["y"])
    np.testing.assert_allclose(coef, expected[1:])
    assert problem.intercept_of(coef) == pytest.approx(expected[0])
    assert 2 * energy == pytest.approx(rss[0])
    assert (problem.n_samples, problem.feature_names) == (49, ("a", "b"))


def test_weights_repeat_rows():
    frame = data()
    weighted = SparseProblem.from_table(frame, "y", weights="w")
    rows = np.repeat(np.arange(50), frame["w"])
    repeated = SparseProblem.from_table({k: v[rows] for k, v in frame.items()}, "y", drop="w")
    assert weighted.n_samples == repeated.n_samples
    for support in ([0], [0, 1]):
        x, energy = weighted.least_squares(support)
        again, same = repeated.least_squares(support)
        np.testing.assert_allclose(x, again)
        assert energy == pytest.approx(same)
    np.testing.assert_allclose(weighted.column_means, repeated.column_means)


def test_without_an_intercept_nothing_is_subtracted():
    problem = SparseProblem.from_table(data(), "y", columns="a", intercept=False)
    np.testing.assert_array_equal(problem.A[:, 0], data()["a"])
    assert (problem.n_samples, problem.intercept_of([1.0])) == (50, 0.0)


def test_sparse_columns_and_an_intercept_are_refused():
    import scipy.sparse

    with pytest.raises(ValueError, match=r"A\.toarray\(\), or use AnnealedSubsetRegressor"):
        SparseProblem(scipy.sparse.eye_array(4), np.arange(4.0), intercept=True)
    weighted = SparseProblem(scipy.sparse.eye_array(4), np.arange(4.0), weights=[1, 4, 0, 1])
    np.testing.assert_allclose(weighted.y, [0, 2, 3])


def test_rounding_leaves_no_constant_column():
    centred = centre(np.full((7, 1), 0.1), np.arange(7.0), True)
    assert not centred.A.any()
    assert constant_share(np.full(5, 3.0)) == pytest.approx(1.0)
    assert constant_share(np.array([1.0, -1.0])) == 0.0


def test_a_missing_intercept_is_noticed():
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((40, 5)), 9 + rng.standard_normal(40)
    assert SparseProblem(A, y).lacks_intercept() > 0.9
    assert SparseProblem(A, y, intercept=True).lacks_intercept() == 0.0
    assert SparseProblem(A, y, intercept=False).lacks_intercept() == 0.0
    assert SparseProblem(A, y - y.mean()).lacks_intercept() == 0.0
    assert SparseProblem(np.column_stack([A, np.full(40, 3.0)]), y).lacks_intercept() == 0.0


def test_solve_warns_where_a_constant_explains_most():
    from l0anneal import solve

    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((40, 5)), 9 + rng.standard_normal(40)
    with pytest.warns(UserWarning, match="intercept=True"):
        solve(SparseProblem(A, y), 1, time_limit=0.05, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(SparseProblem(A, y, intercept=True), 1, time_limit=0.05, random_state=0)


def test_dummies_are_columns_of_a_group():
    frame = {"c": ["u", "v", "w", "u", None, "u"], "x": range(6), "y": [1, 4, 2, 5, 3, 9]}
    problem = SparseProblem.from_table(frame, "y", one_hot=True)
    assert problem.feature_names == ("c=missing", "c=v", "c=w", "x")
    assert problem.groups == ((0, 1, 2),)
    assert problem.table.remarks == ("'c' enters as 3 dummies, to be compared with 'u'",)
    X = problem.table.matrix({"c": ["v", "u", None], "x": [1, 2, 3]})
    np.testing.assert_array_equal(X, [[0, 1, 0, 1], [0, 0, 0, 2], [1, 0, 0, 3]])
    with pytest.raises(ValueError, match="has the word 'z', which the table of the fit did not"):
        problem.table.matrix({"c": ["z"], "x": [1]})
    full = SparseProblem.from_table(frame, "y", one_hot=True, intercept=False)
    assert full.feature_names == ("c=missing", "c=u", "c=v", "c=w", "x")


@pytest.mark.parametrize(("impute", "fill"), [("mean", 2.5), ("median", 2.0)])
def test_missing_values_are_filled_with_those_of_the_fit(impute, fill):
    frame = {"x": [1.0, 2.0, None, 4.5, 2.0, 3.0], "y": [1, 4, 2, 5, 3, 8]}
    problem = SparseProblem.from_table(frame, "y", impute=impute)
    np.testing.assert_allclose(problem.A[2] + problem.column_means, fill)
    np.testing.assert_allclose(problem.table.matrix({"x": [None, 8.0]}), [[fill], [8.0]])


def test_names_follow_a_data_frame_and_are_checked():
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.0, 1.0, 0.0]})
    assert SparseProblem(frame, [1, 2, 3]).feature_names == ("a", "b")
    assert SparseProblem(frame.to_numpy(), [1, 2, 3]).feature_names is None
    with pytest.raises(ValueError, match="feature_names has 1 names, but A has 2 columns"):
        SparseProblem(frame, [1, 2, 3], feature_names=["a"])


def test_advice_is_given_as_the_reader_would_write_it():
    frame = {"c": ["u", "v", "u", "v"], "y": [1, 2, 4, 3]}
    with pytest.raises(ValueError, match=r"drop='c', or make dummies with one_hot=True"):
        SparseProblem.from_table(frame, "y")
    with as_options(), pytest.raises(ValueError, match=r"--drop c, or make dummies with --one-hot"):
        SparseProblem.from_table(frame, "y")
    assert option("drop", "c") == "drop='c'"
