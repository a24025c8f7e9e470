"""Every file of examples/ runs, as a reader would run it, and says what it promises."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
# What has to be in the output, by example: the better way is named last.
SHARES = {
    "snakes": 2, "multilabel": 6, "trees": 3, "skip_chains": 2, "denoise_digits": 3, "node_classification": 2,
    "entities": 5, "first_tagger": 1, "promise": 9, "sensors": 2, "what_to_label": 2,
}  # fmt: skip
# All draw when they are given a path, and one of them as SVG whatever its name.
DRAWS_SVG = {"first_tagger"}
DRAWS = {path.stem for path in EXAMPLES} - DRAWS_SVG


def check(name: str, shares: list[float]) -> None:
    """That the better way is better, where the example says so."""
    if name == "denoise_digits":
        assert shares[0] > shares[1] > shares[2]
    elif name == "multilabel":
        assert shares[1] < shares[5]
    elif name == "first_tagger":
        assert shares[0] > 90.0
    elif name == "promise":
        assert shares[1] < shares[4] < shares[7]
    elif name == "what_to_label":
        assert shares[0] > shares[1]
    elif shares:
        assert shares[0] + 5.0 < shares[-1]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """Whole, in an empty directory; edges help where the example says so."""
    if "import networkx" in path.read_text(encoding="utf-8"):
        pytest.importorskip("networkx")
    picture = tmp_path / "picture.png"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path), str(picture)])
    runpy.run_path(str(path), run_name="__main__")
    assert picture.exists() == (path.stem in DRAWS)
    assert picture.with_suffix(".svg").exists() == (path.stem in DRAWS_SVG)
    shares = [float(share) for share in re.findall(r"([0-9.]+)%", capsys.readouterr().out)]
    assert len(shares) == SHARES.get(path.stem, 0)
    check(path.stem, shares)
