"""Every example runs in its quick mode, keeps the format of the gallery, and shows what it claims."""

import ast
import re
import runpy
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
NEEDS = {
    "correlated": (),
    "denoising": (),
    "diabetes": ("pandas",),
    "dictionary_learning": ("scikit-image",),
    "ecg": ("PyWavelets",),
    "equally_good": ("ISLP", "pandas"),
    "finemapping": ("msprime",),
    "genes": ("ISLP", "pandas"),
    "hitters": ("ISLP", "pandas"),
    "lorenz": ("pysindy",),
    "patches": ("scikit-image",),
    "phase_diagram": (),
    "prediction_intervals": ("pandas",),
}


# These take no more than three seconds in their quick form; `make docs` runs every example in full.
SHORT = ("denoising", "diabetes", "ecg", "patches")


def correlated(names):
    """Most of the sets contain a column that matters; most of the columns of the lasso do not."""
    return (
        names["n_tables"] > 0
        and names["n_right"] / names["n_sets"] >= 0.8
        and names["n_named_right"] / sum(names["named"]) < 0.5
    )


def denoising(names):
    """No patch has more atoms than by OMP, many have fewer, and the picture is as good to .1 dB."""
    noise = names["SHOWN"]
    ours, omp = names["atoms"]["l0anneal", noise], names["atoms"]["OMP", noise]
    better = names["psnr"](names["clean"], names["denoised"]["l0anneal", noise]) > 2 + names[
        "psnr"
    ](names["clean"], names["noisy"][noise])
    return (
        (ours <= omp).all()
        and ours.sum() < omp.sum()
        and abs(names["gain"][noise]) < 0.1
        and better
    )


def diabetes(names):
    """The best subset predicts as well as the lasso, within the error bars, with fewer columns."""
    path, best = names["path"], names["best"]
    error, spread = path.criteria["cv"][best], path.cv_error[best]
    return error < names["lasso_errors"].min() + spread and path.sizes[best] < names["kept"]


def dictionary_learning(names):
    """The error falls by learning, and falls lower with the better codes."""
    ours, omp = names["errors"]["l0anneal"], names["errors"]["OMP"]
    return ours[-1] < ours[0] and omp[-1] < omp[0] and ours[-1] < omp[-1]


def ecg(names):
    """With the same number of atoms, the error is below that of OMP and of wavelets alone."""
    ours, omp, alone = (
        np.array(names["errors"][names[key]]) for key in ("ours", "pursuit", "alone")
    )
    return (ours < omp).all() and ours[-1] < alone[-1]


def equally_good(names):
    """Many models are equally good, and they agree on few columns."""
    undecided = (names["share"] > 0) & (names["share"] < 1)
    return len(names["equal"]) >= 100 and undecided.mean() > 0.5


def finemapping(names):
    """Every set of the first region contains a variant with an effect."""
    return len(names["sets"]) > 0 and all(
        np.intersect1d(found.columns, names["true"]).size for found in names["sets"]
    )


def genes(names):
    """Not all chosen genes are certain, and yet the mean classifies most of the test tumours."""
    chosen = names["probability"][names["model"].support_]
    return chosen.min() < 0.95 and names["together"].mean() > 0.8


def hitters(names):
    """No subset is clear, and the average predicts no worse than the columns of p > ½."""
    errors, probability = names["errors"], names["model"].inclusion_probability_
    undecided = (probability > 0.05) & (probability < 0.95)
    return undecided.sum() > 5 and (
        errors["l0anneal, averaged"].mean() < errors["l0anneal, p > ½"].mean()
    )


def lorenz(names):
    """The terms are right without a threshold, and wrong with a bad one."""
    right = names["right"]
    exact = ((names["found"] != 0) == (names["true"] != 0)).all()
    return exact and names["worst"] < 0.1 and right["STLSQ, threshold 0.01"][0] < 0.5


def patches(names):
    """Exchanges lower the error of OMP, kicks lower it further, and more so with more atoms."""
    saved = {
        key: 1 - ours.sum() / names["omp"][key[0]].sum() for key, ours in names["ours"].items()
    }
    sizes = names["SIZES"]
    return all(saved[k, 20] > saved[k, 0] > 0 for k in sizes) and (
        saved[sizes[-1], 20] > saved[sizes[0], 20]
    )


def phase_diagram(names):
    """Evidence recovers more than basis pursuit; both do where it is easy, neither where it is hard."""
    recovered = names["recovered"]
    easy, hard = recovered.sel(ratio=0.2, alpha=0.8), recovered.sel(ratio=0.9, alpha=0.4)
    return names["only_ours"] > names["only_theirs"] and (easy == 1).all() and (hard == 0).all()


def prediction_intervals(names):
    """The naive intervals contain too few new values, and the others more, near what they promise."""
    levels = names["LEVELS"]
    naive, ours = (np.mean(names["covered"][name], axis=0) for name in names["methods"])
    return (naive < levels - 0.02).all() and (np.abs(ours - levels) < levels - naive).all()


CLAIMS = {
    claim.__name__: claim
    for claim in (
        *(correlated, denoising, diabetes, dictionary_learning, ecg, equally_good, finemapping),
        *(genes, hitters, lorenz, patches, phase_diagram, prediction_intervals),
    )
}


def name_of(script):
    return script.stem.removeprefix("plot_")


def test_every_example_has_its_packages_and_its_claim():
    assert {name_of(script) for script in EXAMPLES} == set(NEEDS) == set(CLAIMS)


@pytest.mark.parametrize("script", EXAMPLES, ids=name_of)
def test_an_example_has_the_format_of_the_gallery(script):
    text = script.read_text("utf-8")
    title, line, blank = ast.get_docstring(ast.parse(text)).splitlines()[:3]
    assert line == "=" * len(title)
    assert blank == ""
    cells = re.split(r"^# %%\n", text, flags=re.M)
    assert len(cells) > 3
    for cell in cells[1:]:
        assert re.match(r"(# .*\n|#\n)+(\n|$)", cell), f"no text after # %%: {cell[:60]}"
    assert cells[-1].startswith("# What to conclude\n# ----------------\n")
    assert all(row.startswith("#") for row in cells[-1].splitlines())
    assert "plt.show()" in text
    assert "savefig" not in text  # the gallery runs an example in its own folder


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, marks=[pytest.mark.slow] * (name_of(path) not in SHORT))
        for path in EXAMPLES
    ],
    ids=name_of,
)
def test_an_example_draws_a_picture_of_what_it_claims(script, tmp_path, monkeypatch):
    for package in NEEDS[name_of(script)]:
        try:
            distribution(package)
        except PackageNotFoundError:
            pytest.skip(f"{package} is not installed, and the example needs it")
    monkeypatch.setenv("L0ANNEAL_QUICK", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("agg")
    plt.close("all")
    names = runpy.run_path(str(script), run_name="__main__")
    assert list(tmp_path.iterdir()) == []
    assert plt.get_fignums() == [1]
    picture = tmp_path / "picture.png"
    plt.figure(1).savefig(picture)
    plt.close("all")
    assert picture.stat().st_size > 10_000
    assert CLAIMS[name_of(script)](names)
