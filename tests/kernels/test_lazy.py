"""Kernels are imported when they are first used, in one place."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import vcrf
from vcrf import kernels

PACKAGE = Path(vcrf.__file__).parent


def test_every_module_of_kernels_is_listed() -> None:
    """So that type checkers know it."""
    there = {path.stem for path in (PACKAGE / "kernels").glob("*.py") if not path.stem.startswith("_")}
    assert set(kernels.__all__) == there
    with pytest.raises(AttributeError, match="nothing"):
        _ = kernels.nothing


def test_numba_waits_until_a_kernel_is_used() -> None:
    """Importing solvers, structures and surrogates takes none."""
    code = (
        "import sys, vcrf.solvers.working_set, vcrf.solvers.cutting_plane, vcrf.structures.chain\n"
        "assert 'numba' not in sys.modules\n"
        "from vcrf import kernels\n"
        "kernels.gradient\n"
        "assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nobody_imports_a_kernel_in_a_function() -> None:
    """`kernels.gradient` does it, once for all."""
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name == "kernels":
            continue
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                found = [node for node in ast.walk(function) if isinstance(node, ast.ImportFrom)]
                assert not any((node.module or "").startswith("vcrf.kernels.") for node in found), path
