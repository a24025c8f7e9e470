"""The page about the architecture: quoted sources are the live ones, and the files it names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def source_of(path: str, name: str) -> str:
    """The source of a class or function."""
    text = (ROOT / path).read_text(encoding="utf-8")
    node = next(n for n in ast.parse(text).body if getattr(n, "name", "") == name)
    return str(ast.get_source_segment(text, node))


def test_quoted_sources_are_the_live_ones() -> None:
    """A block after a comment that names a file and a class is its source."""
    quoted = re.findall(r"<!-- source: (\S+) (\w+) -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert quoted
    for path, name, block in quoted:
        assert block.strip() == source_of(path, name).strip(), f"docs/architecture.md: copy {name} of {path} anew."


def test_the_files_of_the_page_exist() -> None:
    """In the table and in the text."""
    names = set(re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", PAGE))
    assert len(names) > 8
    for name in names:
        assert (ROOT / "src" / "vcrf" / name).exists() or (ROOT / name).exists(), name


def test_the_rooms_of_the_page_exist() -> None:
    """Every folder of the package is in the picture."""
    picture = PAGE.split("```text\n")[1].split("```")[0]
    rooms = {path.name for path in (ROOT / "src" / "vcrf").iterdir() if path.is_dir() and path.name[0] != "_"}
    for room in sorted(rooms):
        assert re.search(rf"\b{room}\b", picture), room
