"""The commands ``theory`` and ``phase-diagram``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from l0anneal.theory import bayes, l1
from l0anneal.theory.errors import ConvergenceError
from l0anneal.theory.paper import paper_numbers
from l0anneal.theory.phases import metastability, phase_diagram
from l0anneal.theory.plotting import default_range, plot_curves, plot_phase_diagram
from l0anneal.theory.replica import ReplicaSymmetric
from l0anneal.theory.rsb import ground_state

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table

Plot = Annotated[Path | None, typer.Option("--plot", help="Write the figure to this file.")]


def register(app: typer.Typer) -> None:
    """Add the commands of the theory to a Typer application."""
    app.command("theory")(theory_command)
    app.command("phase-diagram")(phase_diagram_command)


def _console() -> Console:
    from rich.console import Console

    # A terminal's own width where there is one, and never more than a reader of 80 columns has.
    console = Console(highlight=False)
    return Console(highlight=False, width=min(console.width, 80))


def _table(title: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    return table


def _or_exit(action: Callable[[], Any]) -> Any:
    """Run it; a bad parameter or a solver that gives up is one line and exit code 2."""
    try:
        return action()
    except (ValueError, ConvergenceError, OSError) as error:
        typer.echo(f"Error: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from None


def _figure(width: float, height: float) -> Figure:
    """A figure without a window system behind it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def theory_command(
    alpha: Annotated[float | None, typer.Option(help="Measurements per column, M/N.")] = None,
    rho: Annotated[float | None, typer.Option(help="Selected fraction of columns.")] = None,
    rho_hat: Annotated[float, typer.Option(help="Planted fraction of nonzeros.")] = 0.0,
    sigma_x2: Annotated[float, typer.Option(help="Variance of the planted nonzeros.")] = 1.0,
    sigma_xi2: Annotated[float, typer.Option(help="Variance of the noise.")] = 0.0,
    points: Annotated[int, typer.Option(min=2, max=200, help="Rows of the table.")] = 9,
    t_min: Annotated[float | None, typer.Option(help="Coldest temperature shown.")] = None,
    t_max: Annotated[float | None, typer.Option(help="Hottest temperature shown.")] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's numbers, recomputed.")
    ] = False,
    plot: Plot = None,
) -> None:
    """Replica theory of a problem: transition, spinodals, freezing, and the curves."""
    if paper:
        _or_exit(_print_paper)
        return
    _or_exit(
        lambda: _print_theory(
            alpha, rho, (rho_hat, sigma_x2, sigma_xi2), points, (t_min, t_max), plot
        )
    )


def _print_theory(
    alpha: float | None,
    rho: float | None,
    others: tuple[float, float, float],
    points: int,
    limits: tuple[float | None, float | None],
    plot: Path | None,
) -> None:
    if alpha is None or rho is None:
        raise ValueError("--alpha and --rho are needed (or --paper)")
    theory = ReplicaSymmetric(alpha, rho, *others)
    low, high = default_range(theory)
    low, high = limits[0] or low, limits[1] or high
    if not 0.0 < low < high:
        raise ValueError(f"0 < t-min < t-max is needed, got {low:g} and {high:g}")
    console = _console()
    console.print(
        f"alpha={theory.alpha:g}  rho={theory.rho:g}  rho_hat={theory.rho_hat:g}  "
        f"sigma_x2={theory.sigma_x2:g}  sigma_xi2={theory.sigma_xi2:g}\n"
    )
    for line in _landmarks(theory):
        console.print(line)
    temperatures = np.geomspace(high, low, points)
    spinodals = theory.spinodals()
    if spinodals.planted is None:
        console.print(_states(theory, "equilibrium", temperatures))
    else:
        cooled = [t for t in temperatures if t > (spinodals.cooling or 0.0)]
        console.print(_states(theory, "cooled", cooled))
        planted = [t for t in temperatures if t < spinodals.planted]
        if planted:
            console.print(_states(theory, "planted", planted))
    if plot is not None:
        figure = _figure(9.0, 6.6)
        plot_curves(theory, figure.subplots(2, 2, sharex=True).ravel(), temperatures=(low, high))
        figure.savefig(plot, dpi=150)
        console.print(f"figure written to {plot}", soft_wrap=True)


def _landmarks(theory: ReplicaSymmetric) -> list[str]:
    """Transition, spinodals, freezing and stability, one line each."""
    transition, spinodals = theory.transition(), theory.spinodals()
    lines = []
    if transition is None:
        lines.append("transition          none")
    else:
        cooled, planted = transition.cooled, transition.planted
        lines.append(f"transition          T_c = {transition.temperature:.6e}")
        lines.append(
            f"                    eps {cooled.distortion:.4e} (cooled), "
            f"{planted.distortion:.4e} (planted)"
        )
        lines.append(
            f"                    mse {cooled.mse:.4e} (cooled), {planted.mse:.4e} (planted)"
        )
    if spinodals.planted is None:
        lines.append("spinodals           none, a single branch")
    else:
        lines.append(f"planted spinodal    T = {spinodals.planted:.6e} (on heating)")
        end = "none: it lasts down to T = 0"
        if spinodals.cooling is not None:
            end = f"T = {spinodals.cooling:.6e} (on cooling)"
        lines.append(f"cooled spinodal     {end}")
    frozen, unstable = theory.freezing("cooled"), theory.at_instability("cooled")
    if frozen is None:
        lines.append("freezing (cooled)   none, the entropy stays positive")
    else:
        lines.append(
            f"freezing (cooled)   T = {frozen.temperature:.6e}, eps = {frozen.distortion:.6e}"
        )
    if unstable is None:
        lines.append("replica symmetry    stable on the cooled branch (de Almeida-Thouless)")
    else:
        lines.append(
            f"replica symmetry    AT-unstable below T = {unstable.temperature:.5e}, "
            f"eps = {unstable.distortion:.4e}"
        )
    if frozen is not None:
        ground = ground_state(theory)
        lines.append(f"ground state, 1RSB  eps = {ground.distortion:.6e} at y = {ground.y:.6g}")
    if theory.rho_hat * theory.sigma_x2 == 0.0 and theory.sigma_xi2 > 0.0:
        value = l1.distortion(theory.alpha, theory.rho, sigma_xi2=theory.sigma_xi2)
        refit = l1.distortion_after_least_squares(
            theory.alpha, theory.rho, sigma_xi2=theory.sigma_xi2
        )
        lines.append(f"l1, l1 + LS         eps = {value:.6e}, {refit:.6e}")
    elif theory.sigma_xi2 == 0.0:
        lines.append(
            f"recovery needs      alpha > {bayes.information_limit(theory.rho_hat):.4g} (l0), "
            f"{bayes.amp_threshold(theory.rho_hat):.4g} (Bayes), "
            f"{l1.reconstruction_limit(theory.rho_hat):.4g} (l1)"
        )
    return lines


def _states(theory: ReplicaSymmetric, branch: Any, temperatures: Any) -> Table:
    title = branch if branch == "equilibrium" else f"{branch} branch"
    table = _table(title, "T", "eps", "mse", "s", "g", "hits/k", "RS stable")
    for t in temperatures:
        state = theory.at(float(t), branch)
        table.add_row(
            f"{state.temperature:.3e}",
            f"{state.distortion:.4e}",
            f"{state.mse:.4e}",
            f"{state.entropy:.5f}",
            f"{state.free_entropy:.5f}",
            f"{state.precision:.4f}",
            "yes" if state.at_stable else "no",
        )
    return table


def _print_paper() -> None:
    table = _table("The paper's numbers and ours", "quantity", "paper", "here", "agrees")
    rows = paper_numbers()
    for row in rows:
        answer = "yes" if row.agrees else "no"
        table.add_row(row.quantity, row.printed, f"{row.ours:.6g}", answer)
    console = _console()
    console.print(table)
    for row in rows:
        if row.note != "agrees":
            console.print(f"{row.quantity}: {row.note}.\n")


def phase_diagram_command(
    alpha: Annotated[float | None, typer.Option(help="Mark a problem: its alpha.")] = None,
    rho_hat: Annotated[float | None, typer.Option(help="Mark a problem: its rho_hat.")] = None,
    plot: Plot = None,
) -> None:
    """Where noiseless recovery is possible: the l0, Bayes and l1 limits over rho_hat."""
    _or_exit(lambda: _print_phase_diagram(alpha, rho_hat, plot))


def _print_phase_diagram(alpha: float | None, rho_hat: float | None, plot: Path | None) -> None:
    if (alpha is None) != (rho_hat is None):
        raise ValueError("--alpha and --rho-hat go together")
    console = _console()
    marked = []
    if alpha is not None and rho_hat is not None:
        limits = metastability(alpha, rho_hat)
        marked.append((rho_hat, alpha))
    table = _table("Least alpha for noiseless recovery", "rho_hat", "l0", "Bayes AMP", "l1")
    data = phase_diagram(np.linspace(0.1, 0.9, 9))
    for i, value in enumerate(data.rho_hat.values):
        row = [data[name].values[i] for name in ("alpha_l0", "alpha_bayes", "alpha_l1")]
        table.add_row(f"{value:.1f}", *(f"{v:.5f}" for v in row))
    console.print(table)
    if marked:
        console.print(f"alpha={limits.alpha:g}, rho_hat={limits.rho_hat:g}:")
        for line in _metastable_lines(limits):
            console.print(line)
    if plot is not None:
        figure = _figure(5.6, 5.2)
        plot_phase_diagram(figure.subplots(), points=marked)
        figure.savefig(plot, dpi=150)
        console.print(f"figure written to {plot}", soft_wrap=True)


def _metastable_lines(limits: Any) -> list[str]:
    if limits.onset is None:
        return ["no metastable state for any rho between rho_hat and alpha"]
    if limits.onset == limits.rho_hat:
        lines = ["a metastable state beside the planted one for every rho above rho_hat"]
    else:
        lines = [
            f"free of the metastable state for rho < {limits.onset:.5f}",
            f"there it appears at T = {limits.onset_temperature:.3e} sigma_x2",
        ]
    if limits.trapped is None:
        lines.append("the cooled branch always ends at a spinodal above T = 0")
    else:
        lines.append(f"the cooled branch lasts to T = 0 for rho > {limits.trapped:.5f}")
    return lines
