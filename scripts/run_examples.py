"""Run examples in full and save their figures: ``python scripts/run_examples.py FOLDER [NAME ...]``."""

import os
import runpy
import sys
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(script: Path, folder: Path) -> None:
    """Run one example with a backend that draws files, and save its figures in the folder."""
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    plt.show = lambda *_, **__: None  # the backend has no window to show
    name = script.stem.removeprefix("plot_")
    begin = time.process_time()
    runpy.run_path(str(script), run_name="__main__")
    for number in plt.get_fignums():
        path = folder / (f"{name}.png" if number == 1 else f"{name}-{number}.png")
        plt.figure(number).savefig(path, dpi=130)
    plt.close("all")
    print(f"{script.name}: {time.process_time() - begin:.0f} processor seconds")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MPLBACKEND", "agg")
    names = sys.argv[2:] or [path.stem.removeprefix("plot_") for path in EXAMPLES.glob("plot_*.py")]
    for name in sorted(names):
        run(EXAMPLES / f"plot_{name}.py", folder)
