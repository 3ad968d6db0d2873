"""What ``make demo`` runs: one planted and one noise-only instance, annealed and drawn."""

import argparse
from pathlib import Path

from l0anneal import Schedule, anneal, ensembles
from l0anneal.plotting import COLORS, new_figure

__all__ = ["main"]

N = 200


def main() -> None:
    """Anneal, draw, and say where the picture is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    planted = ensembles.planted(N, 0.8, 0.2, random_state=1)
    noise = ensembles.noise_only(N, 0.5, random_state=1)
    runs = {
        "planted signal, k = 80 of 200": (
            planted,
            anneal(
                planted.problem,
                80,
                Schedule.paper(),
                observables={"mse": planted.mse},
                random_state=0,
                progress=True,
            ),
        ),
        "pure noise, k = 40 of 200": (
            noise,
            anneal(noise.problem, 40, Schedule.paper(), random_state=0, progress=True),
        ),
    }
    figure = new_figure(9, 3.6)
    for ax, (title, (instance, result)) in zip(figure.subplots(1, 2), runs.items()):
        print(f"{title}\n{result.summary()}\n")
        trajectory = result.trajectory.isel(mu=slice(1, None))
        temperature = trajectory["temperature"]
        ax.plot(temperature, trajectory["distortion"], "o", ms=3, color=COLORS["blue"])
        ax.plot([], [], "o", ms=3, color=COLORS["blue"], label="distortion ε")
        if "mse" in trajectory:
            ax.plot(
                temperature,
                trajectory["mse"],
                "s",
                ms=3,
                color=COLORS["red"],
                label="error of the coefficients, MSE",
            )
            print(f"MSE of the answer: {instance.mse(result.coef):.2e}\n")
        ax.set(xscale="log", yscale="log", title=title, xlabel="temperature T")
        ax.set_ylabel("per measurement, per column")
        ax.legend(frameon=False, loc="lower right")
        ax.spines[["top", "right"]].set_visible(False)
    for suffix in ("png", "svg"):
        figure.savefig(out / f"demo.{suffix}", dpi=150)
    print(f"The picture is {out / 'demo.png'}")


if __name__ == "__main__":
    main()
