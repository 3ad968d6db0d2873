"""The commands ``theory`` and ``phase-diagram``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from l0anneal._util.figures import new_figure
from l0anneal.theory import bayes, l1
from l0anneal.theory.branches import Branch
from l0anneal.theory.condensation import condensation_point
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.paper import PaperNumber, paper_numbers
from l0anneal.theory.phases import Metastability, metastability, phase_diagram
from l0anneal.theory.plotting import default_range, plot_curves, plot_phase_diagram
from l0anneal.theory.replica import ReplicaSymmetric
from l0anneal.theory.rsb import ground_state
from l0anneal.theory.states import State

if TYPE_CHECKING:
    import xarray
    from rich.console import Console
    from rich.table import Table

__all__ = ["register"]

Plot = Annotated[Path | None, typer.Option(help="Write a figure to this .png, .pdf or .svg file.")]


def register(app: typer.Typer) -> None:
    """Add the commands of the theory to a Typer application."""
    app.command("theory")(theory_command)
    app.command("phase-diagram")(phase_diagram_command)


# -- theory ----------------------------------------------------------------------------------


def theory_command(
    alpha: Annotated[
        float | None, typer.Option(help="Measurements per column, M/N (required).")
    ] = None,
    rho: Annotated[
        float | None, typer.Option(help="Fraction of columns in the support (required).")
    ] = None,
    rho_hat: Annotated[
        float, typer.Option(help="Fraction of columns in the planted support.")
    ] = 0.0,
    sigma_x2: Annotated[float, typer.Option(help="Variance of the planted coefficients.")] = 1.0,
    sigma_xi2: Annotated[float, typer.Option(help="Variance of the noise.")] = 0.0,
    n_temperatures: Annotated[
        int, typer.Option(min=2, max=200, help="Number of temperatures in the table.")
    ] = 9,
    t_min: Annotated[
        float | None, typer.Option(help="Lowest temperature (default: automatic).")
    ] = None,
    t_max: Annotated[
        float | None, typer.Option(help="Highest temperature (default: automatic).")
    ] = None,
    plot: Plot = None,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="Print only a comparison with the paper's numbers."),
    ] = False,
) -> None:
    """Print what replica theory predicts for a problem with many columns.

    The output lists the phase transition, the temperatures at which branches
    end or freeze, and a table of states for each branch. Its columns are the
    temperature T; the distortion eps per measurement; per column, the mean
    squared error mse (mean squared coefficient if no signal is planted), the
    entropy s and the free entropy g; the precision, which is the fraction of
    selected columns that are in the planted support; and whether replica
    symmetry is stable. Where the entropy of a branch would be negative, the
    branch is frozen: the row has the state in which its entropy vanishes.

    Example: l0anneal theory --alpha .75 --rho .65 --rho-hat .5 --plot t.png
    """
    with _errors_in_one_line():
        if paper:
            _print_paper(paper_numbers())
            return
        if alpha is None or rho is None:
            raise ValueError("--alpha and --rho are required unless --paper is given")
        _check_plot(plot)
        theory = ReplicaSymmetric(alpha, rho, rho_hat, sigma_x2, sigma_xi2)
        temperatures = _temperatures(theory, t_min, t_max, n_temperatures)

        landmarks = _landmarks(theory)
        branches = _states(theory, temperatures)

        _print_theory(theory, landmarks, branches)
        if plot is not None:
            figure = new_figure(9.0, 6.6)
            axs = figure.subplots(2, 2, sharex=True).ravel()
            plot_curves(theory, axs, temperatures=temperatures)
            figure.savefig(plot, dpi=150)
            print(f"figure written to {plot}")


def _temperatures(
    theory: ReplicaSymmetric, t_min: float | None, t_max: float | None, n: int
) -> list[float]:
    """Return ``n`` temperatures in decreasing order between the limits."""
    low, high = default_range(theory)
    low = low if t_min is None else t_min
    high = high if t_max is None else t_max
    if not 0.0 < low < high:
        raise ValueError(
            f"--t-min must be positive and smaller than --t-max; got {low:g} and {high:g}"
        )
    return [float(t) for t in np.geomspace(high, low, n)]


def _states(theory: ReplicaSymmetric, temperatures: Sequence[float]) -> dict[Branch, list[State]]:
    """Return the states of every branch at the temperatures where the branch exists."""
    spinodals = theory.spinodals()
    chosen: dict[Branch, list[float]] = {"equilibrium": list(temperatures)}
    if spinodals.planted is not None:
        chosen = {
            "cooled": [t for t in temperatures if t > (spinodals.cooling or 0.0)],
            "planted": [t for t in temperatures if t < spinodals.planted],
        }
    return {branch: [theory.at(t, branch) for t in ts] for branch, ts in chosen.items() if ts}


def _landmarks(theory: ReplicaSymmetric) -> list[str]:
    """Return the lines on transition, spinodals, freezing, stability and rival methods."""
    return [
        *_transition_lines(theory),
        *_spinodal_lines(theory),
        *_freezing_lines(theory),
        *_rival_lines(theory),
    ]


def _transition_lines(theory: ReplicaSymmetric) -> list[str]:
    transition = theory.transition()
    if transition is None:
        return ["transition          none"]
    cooled, planted = transition.cooled, transition.planted
    return [
        f"transition          T_c = {transition.temperature:.6e}",
        f"                    eps = {cooled.distortion:.4e} (cooled), "
        f"{planted.distortion:.4e} (planted)",
        f"                    mse = {cooled.mse:.4e} (cooled), {planted.mse:.4e} (planted)",
    ]


def _spinodal_lines(theory: ReplicaSymmetric) -> list[str]:
    spinodals = theory.spinodals()
    if spinodals.planted is None:
        return ["spinodals           none, because there is only one branch"]
    end = "none, the branch continues to T = 0"
    if spinodals.cooling is not None:
        end = f"T = {spinodals.cooling:.6e} (on cooling)"
    return [
        f"planted spinodal    T = {spinodals.planted:.6e} (on heating)",
        f"cooled spinodal     {end}",
    ]


def _freezing_lines(theory: ReplicaSymmetric) -> list[str]:
    frozen, unstable = theory.freezing("cooled"), theory.at_instability("cooled")
    lines = ["freezing (cooled)   none, the entropy stays positive"]
    if frozen is not None:
        lines = [f"freezing (cooled)   T = {frozen.temperature:.6e}, eps = {frozen.distortion:.6e}"]
    if unstable is None:
        lines.append("replica symmetry    stable on the cooled branch (de Almeida-Thouless)")
    else:
        lines.append(
            f"replica symmetry    AT-unstable below T = {unstable.temperature:.5e}, "
            f"eps = {unstable.distortion:.4e}"
        )
    if frozen is not None and unstable is None:
        point = condensation_point(theory)
        if point is not None:
            lines.append(
                f"condensation        T_K = {point.temperature:.4e}, "
                f"eps = {point.state.distortion:.4e}, s = {point.state.entropy:.5f}"
            )
    if frozen is not None:
        ground = ground_state(theory)
        lines.append(f"ground state, 1RSB  eps = {ground.distortion:.6e} at y = {ground.y:.6g}")
    return lines


def _rival_lines(theory: ReplicaSymmetric) -> list[str]:
    """Return what l1 achieves on pure noise, or the limits of recovery without noise."""
    alpha, rho, noise = theory.alpha, theory.rho, theory.sigma_xi2
    if noise == 0.0:
        return [
            f"recovery needs      alpha > {bayes.information_limit(theory.rho_hat):.4g} (l0), "
            f"{bayes.amp_threshold(theory.rho_hat):.4g} (Bayes), "
            f"{l1.reconstruction_limit(theory.rho_hat):.4g} (l1)"
        ]
    if theory.rho_hat * theory.sigma_x2 > 0.0:
        return []
    refit = l1.distortion_after_least_squares(alpha, rho, sigma_xi2=noise)
    return [
        f"l1 relaxation       eps = {l1.distortion(alpha, rho, sigma_xi2=noise):.6e}, "
        f"{refit:.6e} after least squares"
    ]


def _print_theory(
    theory: ReplicaSymmetric, landmarks: list[str], branches: dict[Branch, list[State]]
) -> None:
    console = _console()
    console.print(
        f"alpha={theory.alpha:g}  rho={theory.rho:g}  rho_hat={theory.rho_hat:g}  "
        f"sigma_x2={theory.sigma_x2:g}  sigma_xi2={theory.sigma_xi2:g}\n"
    )
    for line in landmarks:
        console.print(line)
    console.print()
    for branch, states in branches.items():
        title = branch if branch == "equilibrium" else f"{branch} branch"
        table = _table(title, "T", "eps", "mse", "s", "g", "precision", "stable")
        for own in states:
            state = theory.clamped(own)
            table.add_row(
                f"{state.temperature:.3e}",
                f"{state.distortion:.4e}",
                f"{state.mse:.4e}",
                f"{state.entropy:.5f}",
                f"{state.free_entropy:.5f}",
                f"{state.precision:.4f}",
                "frozen" if own.frozen else "yes" if state.at_stable else "no",
            )
        console.print(table)


def _print_paper(rows: Sequence[PaperNumber]) -> None:
    console = _console()
    table = _table(
        "Numbers of the paper and of this program", "quantity", "paper", "here", "agrees"
    )
    for row in rows:
        table.add_row(row.quantity, row.printed, f"{row.ours:.6g}", "yes" if row.agrees else "no")
    console.print(table)
    for row in rows:
        if row.note:
            console.print(f"{row.quantity}: {row.note}.\n")


# -- phase diagram ---------------------------------------------------------------------------


def phase_diagram_command(
    alpha: Annotated[
        float | None, typer.Option(help="Measurements per column of a problem to mark.")
    ] = None,
    rho_hat: Annotated[
        float | None, typer.Option(help="Planted fraction of columns of that problem.")
    ] = None,
    plot: Plot = None,
) -> None:
    """Print the smallest alpha at which each method recovers a signal without noise.

    The methods are exhaustive search (l0), Bayes-optimal message passing and
    basis pursuit (l1). With --alpha and --rho-hat, the output also says for
    which rho annealing meets a metastable state.

    Example: l0anneal phase-diagram --alpha .75 --rho-hat .5 --plot p.png
    """
    with _errors_in_one_line():
        if (alpha is None) != (rho_hat is None):
            raise ValueError("--alpha and --rho-hat mark a problem together; give both or neither")
        _check_plot(plot)

        limits = None if alpha is None or rho_hat is None else metastability(alpha, rho_hat)
        data = phase_diagram(np.linspace(0.1, 0.9, 9))

        _print_phase_diagram(data, limits)
        if plot is not None:
            figure = new_figure(5.6, 5.2)
            points = [] if limits is None else [(limits.rho_hat, limits.alpha)]
            plot_phase_diagram(figure.subplots(), points=points)
            figure.savefig(plot, dpi=150)
            print(f"figure written to {plot}")


def _print_phase_diagram(data: xarray.Dataset, limits: Metastability | None) -> None:
    console = _console()
    table = _table("Least alpha for noiseless recovery", "rho_hat", "l0", "Bayes AMP", "l1")
    for i, value in enumerate(data.rho_hat.values):
        row = [data[name].values[i] for name in ("alpha_l0", "alpha_bayes", "alpha_l1")]
        table.add_row(f"{value:.1f}", *(f"{v:.5f}" for v in row))
    console.print(table)
    if limits is not None:
        console.print(f"alpha={limits.alpha:g}, rho_hat={limits.rho_hat:g}:")
        for line in _metastable_lines(limits):
            console.print(line)


def _metastable_lines(limits: Metastability) -> list[str]:
    if limits.onset is None:
        return ["there is no metastable state for any rho between rho_hat and alpha"]
    if limits.onset == limits.rho_hat:
        lines = ["there is a metastable state for every rho above rho_hat"]
    else:
        lines = [
            f"there is no metastable state for rho < {limits.onset:.5f}",
            f"at rho = {limits.onset:.5f} it appears at T = {limits.onset_temperature:.3e} sigma_x2",
        ]
    if limits.trapped is None:
        lines.append("annealing leaves it at a spinodal above T = 0 for every rho")
    else:
        lines.append(f"annealing stays in it down to T = 0 for rho > {limits.trapped:.5f}")
    return lines


# -- shared ----------------------------------------------------------------------------------


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    """Report a bad parameter or a solver that does not converge in one line, with exit code 2."""
    try:
        yield
    except (ValueError, ConvergenceError, OSError) as error:
        typer.echo(f"l0anneal: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from None


def _check_plot(plot: Path | None) -> None:
    """Raise ValueError if the figure cannot be written, before the computation starts."""
    if plot is None:
        return
    if not plot.absolute().parent.is_dir():
        raise ValueError(f"--plot {plot}: its directory does not exist; create it first")
    formats = new_figure(1.0, 1.0).canvas.get_supported_filetypes()
    if plot.suffix.lower().lstrip(".") not in formats:
        raise ValueError(
            f"--plot {plot}: matplotlib cannot write this format; use .png, .pdf or .svg"
        )


def _console() -> Console:
    """Return a console of the terminal's width, but of at most 80 columns."""
    from rich.console import Console

    return Console(highlight=False, width=min(Console().width, 80))


def _table(title: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    return table
