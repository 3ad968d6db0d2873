"""Packages that only the reproduction needs, which come with the extra ``l0anneal[reproduction]``."""

from __future__ import annotations

from importlib import import_module

__all__ = ["check_extra"]

_PACKAGES = {"h5netcdf": "h5netcdf", "h5py": "h5py", "PIL": "pillow"}


def check_extra() -> None:
    """Raise a ModuleNotFoundError that names the extra if one of its packages is missing."""
    for module, package in _PACKAGES.items():
        try:
            import_module(module)
        except ImportError:
            raise ModuleNotFoundError(
                f"l0anneal reproduce needs {package}: pip install 'l0anneal[reproduction]'",
                name=module,
            ) from None
