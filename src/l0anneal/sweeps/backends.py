"""Choose the workers of a run by one word, or by a Dask client."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from joblib import parallel_config

__all__ = ["workers"]

_JOBLIB = {"threads": "threading", "processes": "loky"}


def workers(backend: Any) -> AbstractContextManager[Any]:
    """Return a context in which joblib uses the given kind of workers.

    Parameters
    ----------
    backend : {"threads", "processes"}, dask.distributed.Client or None
        None leaves the choice to `joblib.parallel_config`.
    """
    if backend is None:
        return nullcontext()
    if isinstance(backend, str) and backend in _JOBLIB:
        return parallel_config(_JOBLIB[backend])
    try:
        from distributed import Client
    except ImportError:
        if _is_of_dask(backend):
            raise ModuleNotFoundError(
                "workers of Dask need distributed: pip install 'l0anneal[cluster]'",
                name="distributed",
            ) from None
    else:
        if isinstance(backend, Client):
            return parallel_config("dask", client=backend)
    raise ValueError(
        'backend must be "threads", "processes" or a dask.distributed.Client; got '
        f"{backend!r}" + (": make a Client first" if _is_of_dask(backend) else "")
    )


def _is_of_dask(backend: Any) -> bool:
    module = type(backend).__module__.split(".")[0]
    return backend == "dask" or module in ("dask", "distributed")
