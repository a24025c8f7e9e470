"""How kernels are compiled: each by its own rules, whoever calls it first."""

from __future__ import annotations

import re
from pathlib import Path

from vcrf import kernels
from vcrf.kernels._jit import fast_kernel, kernel

_ROUND = 6755399441055744.0


@kernel
def _rounded(x):
    """To the next integer; were sums reordered, nothing would be left of it."""
    return (x + _ROUND) - _ROUND


@fast_kernel
def _caller(x):
    return _rounded(x)


def test_a_kernel_called_first_by_a_fast_one_keeps_the_order_of_its_sums():
    """Else the caller's fast arithmetic would be handed on to it, and kept for all other callers."""
    assert _caller(0.3) == 0.0
    assert _rounded(0.3) == 0.0
    assert _rounded(2.6) == 3.0


def test_only_kernels_call_inner_ones():
    """They have no entry for Python: a call from there ends the process."""
    room = Path(kernels.__file__).parent
    inner = {
        (path.stem, name)
        for path in room.glob("*.py")
        for name in re.findall(r"^@inner_\w+\ndef (\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    assert len(inner) > 100
    for path in room.parent.rglob("*.py"):
        if room not in path.parents:
            text = path.read_text("utf-8")
            assert not inner & set(re.findall(r"kernels\.(\w+)\.(\w+)", text)), path
