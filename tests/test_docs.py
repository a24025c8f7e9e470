"""Every Python block of README.md and docs/*.md runs, in order, in a directory of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("README.md"), *(ROOT / "docs").rglob("*.md")])
NO_RUN = "no-run"

_BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block: the words after ```python, the line of its first statement, its text."""

    options: list[str]
    line: int
    code: str


def blocks_of(page: str) -> list[Block]:
    """Return the Python blocks of a page, in order."""
    return [
        Block(found[1].split(), page.count("\n", 0, found.start(2)) + 1, found[2]) for found in _BLOCK.finditer(page)
    ]


def run(block: Block, filename: str, namespace: dict[str, object]) -> None:
    """Execute a block as if it stood in the file, at its line."""
    # The empty lines make a traceback show the line of the page.
    code = compile("\n" * (block.line - 1) + block.code, filename, "exec")
    exec(code, namespace)


def name_of(path: Path) -> str:
    """Return the path as seen from the root, for the name of a test."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_python_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page share one namespace, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(path.read_text(encoding="utf-8")):
        if NO_RUN not in block.options:
            run(block, str(path), namespace)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_blocks_that_are_not_run_are_python_too(path: Path) -> None:
    """No block has a syntax error or an option that nobody knows."""
    for block in blocks_of(path.read_text(encoding="utf-8")):
        compile(block.code, str(path), "exec")
        assert block.options in ([], [NO_RUN])


def test_blocks_are_found_with_their_lines_and_options() -> None:
    """Blocks of other languages are left alone."""
    page = "a\n```python\nx = 1\n```\n\n```text\nx = 2\n```\n```python no-run\nx = 3\ny = 4\n```\n"
    assert blocks_of(page) == [Block([], 3, "x = 1\n"), Block(["no-run"], 10, "x = 3\ny = 4\n")]


def test_a_failing_block_names_the_line_of_the_page() -> None:
    """The traceback leads to the line in the page."""
    (block,) = blocks_of("one\n\n```python\nx = 1\nraise ValueError\n```\n")
    with pytest.raises(ValueError) as caught:
        run(block, "page.md", {})
    assert caught.traceback[-1].lineno + 1 == 5


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_to_files_lead_somewhere(path: Path) -> None:
    """Relative links name files that exist."""
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        assert (path.parent / target).exists(), f"{name_of(path)} links to {target}"
