"""Modules that are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_TRAIN = """
import sys
from vcrf.cli.app import app
try:
    app(sys.argv[1:], prog_name="vcrf")
except SystemExit as end:
    assert not end.code
assert "sklearn" in sys.modules
print("late", any(name.startswith(("scipy.stats.", "pandas.")) for name in sys.modules))
from scipy.stats import binom
import scipy.stats._stats_py
from sklearn.utils import fixes
assert binom.pmf(1, 2, 0.5) == fixes.scipy.stats.binom.pmf(1, 2, 0.5)
assert scipy.stats is sys.modules["scipy.stats"]
"""


def test_a_training_imports_no_statistics(tmp_path: Path) -> None:
    """Who asks for them later gets them."""
    data = tmp_path / "a.tsv"
    data.write_text("a\tX\nb\tY\n\n" * 3)
    command = [sys.executable, "-c", _TRAIN, "train", str(data), "-o", str(tmp_path / "a.vcrf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("late False\n")
