"""The commands, through an application of their own."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from l0anneal.cli.theory import register

app = typer.Typer()
register(app)


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "80"})


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    figure = tmp_path_factory.mktemp("theory") / "curves.png"
    arguments = ("--alpha", 0.75, "--rho", 0.65, "--rho-hat", 0.5, "--plot", figure)
    return run("theory", *arguments), figure


def test_theory_prints_the_landmarks(hard):
    result, figure = hard
    assert result.exit_code == 0, result.output
    for text in ("T_c = 2.941312e-04", "6.388440e-04", "1.088676e-07", "7.257829e-09"):
        assert text in result.stdout
    assert "cooled branch" in result.stdout
    assert "planted branch" in result.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_output_fits_eighty_columns(hard):
    noise = run("theory", "--alpha", 0.5, "--rho", 0.2, "--sigma-xi2", 1, "--points", 4)
    assert "1.200652e-02" in noise.stdout
    assert "AT-unstable" in noise.stdout
    for text in (noise.stdout, hard[0].stdout):
        lines = [line for line in text.splitlines() if "figure written" not in line]
        assert max(map(len, lines)) <= 80
        assert "…" not in text


def test_theory_without_a_transition():
    result = run("theory", "--alpha", 0.8, "--rho", 0.4, "--rho-hat", 0.2, "--points", 3)
    assert result.exit_code == 0
    assert "transition          none" in result.stdout
    assert "equilibrium" in result.stdout


def test_the_papers_numbers():
    result = run("theory", "--paper")
    assert result.exit_code == 0
    assert "0.00919" in result.stdout
    assert "0.00905209" in result.stdout


def test_phase_diagram(tmp_path):
    figure = tmp_path / "diagram.pdf"
    result = run("phase-diagram", "--plot", figure)
    assert result.exit_code == 0, result.output
    assert "0.83130" in result.stdout
    assert "0.68570" in result.stdout
    assert figure.read_bytes().startswith(b"%PDF")
    result = run("phase-diagram", "--alpha", 0.6, "--rho-hat", 0.5)
    assert "every rho above rho_hat" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("theory", "--alpha", 0.5, "--rho", 0.6), "rho < alpha"),
        (("theory", "--alpha", 0.5, "--rho", 0.2), "no signal and no noise"),
        (("theory", "--alpha", 0.5), "--alpha and --rho are needed"),
        (("theory", "--alpha", 0.5, "--rho", 0.2, "--rho-hat", 2), "rho_hat <= 1"),
        (
            ("theory", "--alpha", 0.5, "--rho", 0.2, "--sigma-xi2", 1, "--t-min", 5, "--t-max", 1),
            "t-min < t-max",
        ),
        (("phase-diagram", "--alpha", 0.5), "go together"),
        (("phase-diagram", "--alpha", 0.4, "--rho-hat", 0.5), "rho_hat < alpha"),
        (("phase-diagram", "--plot", "/no/such/place/x.png"), "No such file"),
        (("phase-diagram", "--plot", "x.unknown"), "not supported"),
    ],
)
def test_bad_parameters_are_one_line_and_exit_code_two(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.output


def test_the_theory_stands_alone():
    """No module of the engine is imported, not even for the commands."""
    code = (
        "import sys, l0anneal.cli.theory; "
        "names = [m for m in sys.modules if m.startswith('l0anneal.')]; "
        "rooms = ('l0anneal.theory', 'l0anneal.cli', 'l0anneal._util'); "
        "print(sorted(m for m in names if not m.startswith(rooms)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
