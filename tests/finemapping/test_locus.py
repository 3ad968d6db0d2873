"""Loci in memory and in files."""

import numpy as np
import pytest

from helpers.loci import loci, save
from l0anneal import Locus
from l0anneal.finemapping.locus import digest_of_files, find_loci

LOCUS = loci(2, 6)[1]


def same(a, b):
    first, second = a.read(), b.read()
    np.testing.assert_array_equal(first.z, second.z)
    np.testing.assert_array_equal(first.R, second.R)
    np.testing.assert_array_equal(first.column_std, second.column_std)
    assert first.n == second.n
    assert a.column_names == b.column_names
    assert a.name == b.name


def write_table(directory, suffix, columns, separator):
    path = directory / f"{LOCUS.name}{suffix}"
    lines = [
        separator.join(columns),
        *(separator.join(map(repr_of, row)) for row in zip(*columns.values())),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def repr_of(value):
    return value if isinstance(value, str) else repr(float(value))


def test_an_npz_file_is_read(tmp_path):
    same(Locus.load(save(LOCUS, tmp_path)), LOCUS)


def test_the_arrays_may_have_the_names_of_genetics(tmp_path):
    path = tmp_path / f"{LOCUS.name}.npz"
    beta, se = np.array(LOCUS.z) * 0.1, np.full(6, 0.1)
    np.savez(path, BETA=beta, SE=se, LD=LOCUS.R, N=np.full(6, 400.0), SNP=LOCUS.names)
    expected = Locus(
        LOCUS.name, LOCUS.R, 400, effect=beta, standard_error=se, names=LOCUS.column_names
    )
    same(Locus.load(path), expected)


@pytest.mark.parametrize(("suffix", "separator"), [(".tsv", "\t"), (".z", " ")])
@pytest.mark.parametrize("partner", [".ld", ".npy"])
def test_a_table_with_its_correlations_is_read(tmp_path, suffix, separator, partner):
    columns = {
        "rsid": LOCUS.column_names,
        "chromosome": ["1"] * 6,
        "beta": 0.1 * np.array(LOCUS.z),
        "se": np.full(6, 0.1),
        "z": LOCUS.z,
        "n": [400, 500, 400, 450, 600, 700],
    }
    path = write_table(tmp_path, suffix, columns, separator)
    if partner == ".ld":
        np.savetxt(path.with_suffix(".ld"), LOCUS.R, fmt="%.18g")
    else:
        np.save(path.with_suffix(".npy"), LOCUS.R)
    same(Locus.load(path), LOCUS)  # z counts, not beta; the smallest n counts


def test_n_can_be_given_for_all_loci():
    nameless = Locus("a", LOCUS.R, z=LOCUS.z)
    assert nameless.read(123).n == 123
    assert nameless.column_names == ["0", "1", "2", "3", "4", "5"]
    assert LOCUS.read(123).n == 400
    with pytest.raises(ValueError, match="got no n"):
        nameless.read()


def test_directories_and_files_are_found(tmp_path):
    for name in ("b.npz", "a.z", "a.ld", "c.tsv", "c.npy", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in find_loci([tmp_path])] == ["a.z", "b.npz", "c.tsv"]
    assert find_loci([tmp_path / "b.npz"]) == [tmp_path / "b.npz"]
    with pytest.raises(ValueError, match="ends in"):
        find_loci([tmp_path / "notes.txt"])
    with pytest.raises(FileNotFoundError):
        find_loci([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no locus"):
        find_loci([tmp_path / "empty"])


def test_the_digest_depends_on_all_numbers_and_names(tmp_path):
    z, R = np.array(LOCUS.z), np.array(LOCUS.R)
    changed = R.copy()
    changed[0, 1] = changed[1, 0] = R[0, 1] + 1e-9
    different = [
        Locus("a", R, 400, z=z),
        Locus("a", R, 401, z=z),
        Locus("a", R, 400, z=z + 1e-9),
        Locus("a", changed, 400, z=z),
        Locus("a", R, 400, effect=z, standard_error=np.ones(6)),
        Locus("a", R, 400, z=z, names=LOCUS.names),
    ]
    assert len({locus.digest for locus in different}) == 6
    assert Locus("b", R.tolist(), 400, z=z.tolist()).digest == different[0].digest
    path = write_table(tmp_path, ".z", {"z": LOCUS.z}, " ")
    np.save(path.with_suffix(".npy"), R)
    before = digest_of_files(path)
    np.save(path.with_suffix(".npy"), changed)
    assert digest_of_files(path) != before


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"z": [1.0, 2.0]}, "no correlations R, but z"),
        ({"R": np.eye(2)}, "neither z nor effect and standard_error, but R"),
        ({"R": np.eye(2), "beta": [1.0, 2.0]}, "neither z nor effect"),
        ({"R": np.eye(2), "z": [1.0, 2.0], "n": 10.5}, "n must be an integer"),
        ({"R": np.eye(2), "z": [1.0, 2.0], "names": ["a"]}, "2 columns, but 1 names"),
    ],
)
def test_incomplete_files_are_refused(tmp_path, arrays, words):
    path = tmp_path / "a.npz"
    np.savez(path, **{name: np.array(values) for name, values in arrays.items()})
    with pytest.raises(ValueError, match=words):
        Locus.load(path)


def test_damaged_tables_are_refused(tmp_path):
    path = tmp_path / "a.z"
    path.write_text("z n\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.z: a table needs a header"):
        Locus.load(path)
    path.write_text("z n\n1.0 10\n2.0\n", encoding="utf-8")
    with pytest.raises(ValueError, match="row 3 has 1 fields, but the header has 2"):
        Locus.load(path)
    path.write_text("z n\n1.0 10\n2.0 10\n", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="no correlations beside the table"):
        Locus.load(path)
    (tmp_path / "b.npz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"b\.npz"):
        Locus.load(tmp_path / "b.npz")


@pytest.mark.parametrize("name", ["", "a\tb", 3])
def test_a_name_must_fit_into_a_table(name):
    with pytest.raises(ValueError, match="printable"):
        Locus(name, np.eye(2), 10, z=[1.0, 2.0])
