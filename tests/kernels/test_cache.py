"""Where compiled kernels are kept when the usual places cannot be written."""

from __future__ import annotations

import ast
import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core import caching

import vcrf
from vcrf.kernels import _cache
from vcrf.kernels._jit import kernel

USE = """
from vcrf.kernels import _jit
@_jit.kernel
def double(x):
    return 2 * x
print(double(21), double._cache.cache_path)
"""


@pytest.fixture
def read_only(tmp_path: Path) -> dict[str, str]:
    """The environment of an installation where neither the package nor the home directory can be written.

    Files stand where directories would have to be made: permissions do not bind root.
    """
    package = tmp_path / "site" / "vcrf"
    shutil.copytree(Path(vcrf.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kernels" / "__pycache__").write_text("")
    (package / "kernels" / "own.py").write_text(USE)
    home = tmp_path / "home"
    home.write_text("")
    (tmp_path / "temporary").mkdir()
    return {
        **os.environ, "PYTHONPATH": str(tmp_path / "site"), "HOME": str(home), "XDG_CACHE_HOME": str(home),
        "LOCALAPPDATA": str(home), "NUMBA_CACHE_DIR": str(home / "cache"), "TMPDIR": str(tmp_path / "temporary"),
        "TEMP": str(tmp_path / "temporary"),
    }  # fmt: skip


def use(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Compile a kernel in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "vcrf.kernels.own"], env=environment, capture_output=True, text=True, check=True
    )


def test_a_read_only_installation_keeps_kernels_among_temporary_files(
    read_only: dict[str, str], tmp_path: Path
) -> None:
    """One line says so, and how to set the directory; the next process finds them."""
    for _ in range(2):
        done = use(read_only)
        value, where = done.stdout.split()
        assert value == "42"
        assert Path(where).is_relative_to(tmp_path / "temporary")
        (line,) = done.stderr.splitlines()
        assert "kept in" in line
        assert "Set NUMBA_CACHE_DIR" in line
    assert len(list(Path(where).glob("own.double*.nbc"))) == 1


def test_without_any_directory_kernels_are_compiled_all_the_same(read_only: dict[str, str], tmp_path: Path) -> None:
    """A directory that others could write to is none: code is loaded from there."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    (tmp_path / "temporary" / f"vcrf-kernels-{user}").write_text("")
    done = use(read_only)
    assert done.stdout.split() == ["42", "None"]
    (line,) = done.stderr.splitlines()
    assert "each process compiles them anew. Set NUMBA_CACHE_DIR" in line


@pytest.mark.skipif(os.name == "nt", reason="permissions")
def test_a_directory_of_others_is_not_trusted(tmp_path: Path) -> None:
    """Who can write there could have us run any code."""
    tmp_path.chmod(0o700)
    assert _cache._is_own(tmp_path)
    tmp_path.chmod(0o777)
    assert not _cache._is_own(tmp_path)


def triple(x: float) -> float:
    """A kernel to be."""
    return 3 * x


def test_a_full_disk_costs_time_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The kernel works, and a line says why it is not kept."""

    def refuse(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(caching.IndexDataCacheFile, "save", refuse)
    assert kernel(triple)(2.0) == 6.0
    (record,) = caplog.records
    assert f"cannot be written to {tmp_path}" in record.message
    assert "No space left on device. Set NUMBA_CACHE_DIR" in record.message


def test_a_damaged_cache_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut may leave anything in it."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    kernel(triple)(2.0)
    for ending in ("nbi", "nbc"):
        (path,) = tmp_path.glob(f"*/*.{ending}")
        path.write_bytes(b"\x80\x05 no longer")
        assert kernel(triple)(2.0) == 6.0
        again = kernel(triple)
        assert again(2.0) == 6.0
        assert sum(again.stats.cache_hits.values()) == 1  # type: ignore[attr-defined]


def test_a_change_in_a_kernel_reaches_those_that_call_it(tmp_path: Path) -> None:
    """Machine code holds that of what it calls: after an upgrade none of the version before must be left."""
    package = tmp_path / "site" / "vcrf"
    shutil.copytree(Path(vcrf.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    head = "from vcrf.kernels._jit import kernel\n"
    calls = "from vcrf.kernels.inner import inner\n@kernel\ndef outer(x):\n    return inner(x)\n"
    (package / "kernels" / "outer.py").write_text(head + calls)
    for number in (1, 2):
        (package / "kernels" / "inner.py").write_text(f"{head}@kernel\ndef inner(x):\n    return x + {number}\n")
        done = subprocess.run(
            [sys.executable, "-c", "from vcrf.kernels.outer import outer; print(outer(40))"],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site")}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert int(done.stdout) == 40 + number


def test_a_change_reaches_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that import it, directly or not, and none besides: the rest need not be compiled again."""
    for name, imported in {"inner": "_jit", "middle": "inner", "outer": "middle", "other": "_jit"}.items():
        (tmp_path / f"{name}.py").write_text(f"from vcrf.kernels.{imported} import anything\n")
    (tmp_path / "_jit.py").write_text("")
    monkeypatch.setattr(_cache, "__file__", str(tmp_path / "_cache.py"))

    def stamps() -> dict[str, str]:
        for cached in (_cache.source_stamp, _cache._imported, _cache._digest):
            cached.cache_clear()
        return {path.stem: _cache.source_stamp(path) for path in sorted(tmp_path.glob("*.py"))}

    before = stamps()
    with (tmp_path / "inner.py").open("a") as file:
        file.write("# changed\n")
    after = stamps()
    assert {name for name in before if before[name] != after[name]} == {"inner", "middle", "outer"}
    _cache.source_stamp.cache_clear()


def test_kernels_import_each_other_in_one_way() -> None:
    """The checksum of what a kernel calls is found by reading these lines."""
    paths = set(Path(_cache.__file__).parent.glob("*.py")) - {Path(_cache.__file__).with_name("__init__.py")}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert all(not alias.name.startswith("vcrf.kernels") for alias in node.names), path
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                assert node.module != "vcrf.kernels", path
                assert not str(node.module).startswith("vcrf.kernels.") or node.col_offset == 0, path
