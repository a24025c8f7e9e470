"""What is installed: versions, threads, and where the compiled kernels lie."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import vcrf

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "safetensors", "typer", "rich")
OPTIONAL_PACKAGES = ("matplotlib",)


def describe_installation() -> dict[str, dict[str, Any]]:
    """Return versions, machine, and kernels, as JSON values."""
    return {"versions": _versions(), "machine": _machine(), "kernels": describe_kernels()}


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version(), "vcrf": vcrf.__version__}
    for package in (*PACKAGES, *OPTIONAL_PACKAGES):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def _machine() -> dict[str, Any]:
    from llvmlite.binding import get_host_cpu_name

    from vcrf.arguments.running import n_threads

    return {
        "platform": platform.platform(),
        "processor": get_host_cpu_name(),
        "cores": os.cpu_count(),
        "threads": n_threads(None),
        "python": sys.executable,
    }


def describe_kernels() -> dict[str, Any]:
    """Return how many kernels there are, how many are compiled on disk, and in which directories.

    A kernel is compiled for the types of its first call and kept on disk; a new version of its file, or another
    processor, makes it compile again.
    """
    kernels = _dispatchers()
    compiled = [files for files in map(_files_on_disk, kernels) if files]
    directories = sorted({str(kernel.stats.cache_path) for kernel in kernels if kernel.stats.cache_path})
    return {
        "kernels": len(kernels),
        "compiled": len(compiled),
        "bytes": sum(file.stat().st_size for files in compiled for file in files),
        "directories": directories,
        "writable": all(os.access(directory, os.W_OK) for directory in directories),
    }


def _files_on_disk(kernel: Any) -> list[Path]:
    """Machine code of a kernel in numba's cache, which names files by module, function and line."""
    code = kernel.py_func.__code__
    pattern = f"{Path(code.co_filename).stem}.{kernel.py_func.__qualname__}-{code.co_firstlineno}.*.nbc"
    return list(Path(kernel.stats.cache_path).glob(pattern)) if kernel.stats.cache_path else []


def _dispatchers() -> list[Any]:
    """All compiled functions of `vcrf.kernels`."""
    import vcrf.kernels as package

    found = {}
    for module in iter_modules(package.__path__):
        names = vars(import_module(f"vcrf.kernels.{module.name}"))
        found.update({id(value): value for value in names.values() if hasattr(value, "nopython_signatures")})
    return list(found.values())
