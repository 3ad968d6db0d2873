"""Readers of files."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from l0anneal.problem.files import read_matrix, read_vector

MATRIX = np.array([[1.0, 0.0, 2.5], [0.0, -3.0, 0.0]])


def write(path, matrix):
    if path.suffix == ".npy":
        np.save(path, matrix)
    elif path.name == "sparse.npz":
        scipy.sparse.save_npz(path, scipy.sparse.csr_array(matrix))
    elif path.suffix == ".npz":
        np.savez(path, matrix)
    elif path.suffix == ".csv":
        np.savetxt(path, matrix, delimiter=",", header="a,b,c" if "names" in path.name else "")
    else:
        scipy.io.mmwrite(path, scipy.sparse.coo_array(matrix))


@pytest.mark.parametrize(
    "name", ["A.npy", "A.npz", "sparse.npz", "A.csv", "names.csv", "A.CSV", "A.mtx"]
)
def test_all_formats_are_read(tmp_path, name):
    path = tmp_path / name
    write(path.with_suffix(path.suffix.lower()), MATRIX)
    if path.suffix.isupper():
        path.with_suffix(".csv").rename(path)
    matrix = read_matrix(path)
    if scipy.sparse.issparse(matrix):
        matrix = matrix.toarray()
    np.testing.assert_array_equal(matrix, MATRIX)
    assert isinstance(matrix, np.memmap) == (name == "A.npy")


@pytest.mark.parametrize("name", ["y.npy", "y.npz", "sparse.npz", "y.csv", "y.mtx"])
@pytest.mark.parametrize("shape", [(3, 1), (1, 3)])
def test_a_matrix_of_one_row_or_column_is_a_vector(tmp_path, name, shape):
    write(tmp_path / name, np.arange(3.0).reshape(shape))
    np.testing.assert_array_equal(read_vector(tmp_path / name), np.arange(3.0))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("A.txt", b"1", r"A.txt: unknown format '.txt'; convert it to one of .npy"),
        ("A.npy", b"rubbish", r"A.npy: not a readable .npy file"),
        ("A.csv", b"1,2\n3,x\n", r"A.csv: not a readable .csv file"),
        ("A.csv", b"a,b\n", "holds no numbers"),
        ("A.mtx", b"rubbish", r"A.mtx: not a readable .mtx file"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_matrix(tmp_path / name)


def test_missing_files_and_wrong_shapes_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_matrix(tmp_path / "A.npy")
    np.savez(tmp_path / "two.npz", a=MATRIX, b=MATRIX)
    with pytest.raises(ValueError, match="holds 2 arrays"):
        read_matrix(tmp_path / "two.npz")
    write(tmp_path / "A.csv", MATRIX)
    with pytest.raises(ValueError, match=r"one vector is needed; got shape \(2, 3\)"):
        read_vector(tmp_path / "A.csv")
