"""The commands ``theory`` and ``phase-diagram``."""

import inspect
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from l0anneal.cli.theory import phase_diagram_command, register, theory_command
from l0anneal.theory import ReplicaSymmetric, metastability, paper_numbers

app = typer.Typer()
register(app)


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "80"})


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    figure = tmp_path_factory.mktemp("theory") / "curves.png"
    arguments = ("--alpha", 0.75, "--rho", 0.65, "--rho-hat", 0.5, "--plot", figure)
    return run("theory", *arguments), figure


@pytest.fixture(scope="module")
def noise():
    return run("theory", "--alpha", 0.5, "--rho", 0.2, "--sigma-xi2", 1, "--n-temperatures", 4)


@pytest.fixture(scope="module")
def paper():
    return run("theory", "--paper")


def test_theory_prints_the_landmarks(hard):
    result, figure = hard
    assert result.exit_code == 0, result.output
    for text in ("T_c = 2.941312e-04", "6.388440e-04", "1.088676e-07", "7.257829e-09"):
        assert text in result.stdout
    assert "cooled branch" in result.stdout
    assert "planted branch" in result.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_theory_of_pure_noise(noise):
    assert noise.exit_code == 0, noise.output
    assert "1.200652e-02" in noise.stdout
    assert "AT-unstable below T = 1.29842e-01" in noise.stdout
    assert "eps = 2.136015e-01, 9.659079e-02 after least squares" in noise.stdout
    ends = ("yes ", "no ", "frozen ")
    rows = [line for line in noise.stdout.splitlines() if line.endswith(ends)]
    assert [row.split()[-1] for row in rows] == ["yes", "yes", "no", "frozen"]


def test_theory_without_a_transition():
    result = run("theory", "--alpha", 0.8, "--rho", 0.4, "--rho-hat", 0.2, "--n-temperatures", 3)
    assert result.exit_code == 0
    assert "transition          none" in result.stdout
    assert "equilibrium" in result.stdout


def test_every_number_of_the_paper_has_one_line(paper):
    assert paper.exit_code == 0
    lines = paper.stdout.splitlines()
    for row in paper_numbers():
        answer = "yes" if row.agrees else "no"
        expected = [*row.quantity.split(), row.printed, f"{row.ours:.6g}", answer]
        assert expected in [line.split() for line in lines], row.quantity


def test_output_fits_eighty_columns(hard, noise, paper):
    for result in (hard[0], noise, paper, run("theory", "--help"), run("phase-diagram", "--help")):
        lines = [line for line in result.stdout.splitlines() if "figure written" not in line]
        assert len(lines) > 10
        # combining characters, such as the hat of ρ̂, take no column
        assert max(len(line.replace("\u0302", "")) for line in lines) <= 80
        assert "…" not in result.stdout


def test_phase_diagram(tmp_path):
    figure = tmp_path / "diagram.pdf"
    result = run("phase-diagram", "--plot", figure)
    assert result.exit_code == 0, result.output
    assert "0.83130" in result.stdout
    assert "0.68570" in result.stdout
    assert figure.read_bytes().startswith(b"%PDF")


def test_phase_diagram_of_a_marked_problem():
    result = run("phase-diagram", "--alpha", 0.6, "--rho-hat", 0.5)
    assert result.exit_code == 0, result.output
    assert "a metastable state for every rho above rho_hat" in result.stdout
    assert "down to T = 0 for rho > 0.50000" in result.stdout


@pytest.mark.parametrize(
    ("command", "function"),
    [(theory_command, ReplicaSymmetric), (phase_diagram_command, metastability)],
)
def test_options_have_the_names_of_the_python_parameters(command, function):
    options = inspect.signature(command).parameters
    assert set(inspect.signature(function).parameters) <= set(options)
    name = "theory" if command is theory_command else "phase-diagram"
    text = run(name, "--help").stdout
    for option in options:
        assert f"--{option.replace('_', '-')} " in text
    assert f"Example: l0anneal {name} " in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("theory", "--alpha", 0.5, "--rho", 0.6), "rho must be smaller than alpha"),
        (("theory", "--alpha", 0.5, "--rho", 0.2), "y would be zero"),
        (("theory", "--alpha", 0.5), "--alpha and --rho are required"),
        (("theory", "--alpha", 0.5, "--rho", 0.2, "--rho-hat", 2), "rho_hat is a fraction"),
        (
            ("theory", "--alpha", 0.5, "--rho", 0.2, "--sigma-xi2", 1, "--t-min", 5, "--t-max", 1),
            "--t-min must be positive and smaller than --t-max; got 5 and 1",
        ),
        (
            ("theory", "--alpha", 0.5, "--rho", 0.2, "--sigma-xi2", 1, "--t-min", 0),
            "--t-min must be positive",
        ),
        (("phase-diagram", "--alpha", 0.5), "give both or neither"),
        (("phase-diagram", "--alpha", 0.4, "--rho-hat", 0.5), "0 < rho_hat < alpha"),
        (("phase-diagram", "--plot", "/no/such/place/x.png"), "directory does not exist"),
        (("theory", "--alpha", 0.5, "--rho", 0.2, "--plot", "x.unknown"), "use .png, .pdf or .svg"),
    ],
)
def test_errors_are_one_line_and_exit_code_two(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.output


def test_the_commands_import_nothing_of_the_engine():
    code = (
        "import sys, l0anneal.cli.theory; "
        "names = [m for m in sys.modules if m.startswith('l0anneal.')]; "
        "rooms = ('l0anneal.theory', 'l0anneal.cli', 'l0anneal._util'); "
        "print(len(names) > 10, sorted(m for m in names if not m.startswith(rooms)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "True []"


def test_a_stable_branch_with_negative_entropy_is_called_frozen():
    """The cooled branch of this problem is AT-stable down to T = 0, also where it has frozen."""
    limits = ("--t-min", 1e-8, "--t-max", 1e-6, "--n-temperatures", 3)
    out = run("theory", "--alpha", 0.75, "--rho", 0.65, "--rho-hat", 0.5, *limits).output
    rows = [line for line in out.splitlines() if "1.000e-08" in line]
    assert any("frozen" in row and "7.2578e-09" in row for row in rows)
    assert "condensation" in out
    assert "T_K = 1.3466" in out
