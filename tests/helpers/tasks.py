"""Tasks of every kind, small enough for a test."""

import numpy as np

from l0anneal.reproduction import Store, Task

NOISE = {"kind": "noise_only", "n_columns": 40, "alpha": 0.5}
PLANTED = {"kind": "planted", "n_columns": 40, "alpha": 0.8, "rho_hat": 0.2, "support": "fixed"}
SEEDED = {"kind": "seeded", "n_columns": 48, "alpha": 0.75, "rho_hat": 0.25}
SCHEDULE = {"kind": "paper", "n": 20, "tau": 2}
ANNEAL = {"kind": "anneal", "rho": 0.3, "schedule": SCHEDULE}
HEAT = {"kind": "heat", "rho": 0.3, "mu_max": 1e6, "mu_min": 10.0, "n": 6, "tau": 3}


def tasks(n_samples=2):
    """Every solver on every ensemble that it serves."""
    pairs = [
        (NOISE, ANNEAL),
        (PLANTED, ANNEAL),
        (SEEDED, ANNEAL),
        (PLANTED, HEAT),
        (NOISE, {"kind": "omp", "rho": 0.2}),
        (NOISE, {"kind": "l1", "rho": 0.2}),
        (PLANTED, {"kind": "basis_pursuit"}),
    ]
    return [Task(e, s, i) for e, s in pairs for i in range(n_samples)]


def assert_same_arrays(first: Store, second: Store, tasks) -> None:
    """Bit for bit; NaN equals NaN."""
    for task in tasks:
        a, b = first.read(task).arrays, second.read(task).arrays
        assert set(a) == set(b)
        assert a
        for name in a:
            assert a[name].dtype == b[name].dtype
            assert a[name].shape == b[name].shape
            assert a[name].tobytes() == b[name].tobytes(), (task.to_json(), name)


def assert_same_data(first, second) -> None:
    """The .nc files of two reports, timings apart."""
    import xarray as xr

    names = sorted(path.name for path in first.glob("*.nc"))
    assert names
    assert names == sorted(path.name for path in second.glob("*.nc"))
    for name in names:
        with xr.open_dataset(first / name) as a, xr.open_dataset(second / name) as b:
            assert a.sizes == b.sizes
            assert set(a.variables) == set(b.variables)
            for variable in set(a.variables) - {"seconds"}:
                np.testing.assert_array_equal(a[variable].to_numpy(), b[variable].to_numpy())
