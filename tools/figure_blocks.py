"""Figures of README and docs: kept in results/figures.json, written into the pages, and found in their prose.

A page shows an entry of the file between two comments:

    <!-- figures: NAME -->
    | the table of the entry |

    *Version, commit, machine and command of the entry.*
    <!-- figures: end -->

NAME is `measured` for the table of README. The block is written by `python benchmarks/figures.py --write`. Figures in
the sentences around it are kept too, in the entry's list `said`: `tests/test_figures.py` fails when a page says a
figure that no entry of its section has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "results" / "figures.json"
MEASURED = "measured"  # the block with the figures that benchmarks/figures.py measures itself

Figures = dict[str, dict[str, Any]]

_BLOCK = re.compile(r"<!-- figures: ([a-z0-9-]+) -->\n(.*?)<!-- figures: end -->\n", re.DOTALL)
_CODE = re.compile(r"^```.*?^```$|^    .*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_UNITS = (
    "%|s|ms|MB|GB|tokens/s|tokens a second|passes|times|points|(?:processor )?(?:seconds|minutes)|microseconds|weights"
)
# A number with a unit, or one with two decimals.
_QUANTITY = re.compile(rf"(?<![\w.,/])[+-]?(?:\d[\d,]*(?:\.\d+)?(?:e-?\d+)? (?:{_UNITS})(?![\w/])|\d+\.\d\d+(?!\d))")
_CELL = re.compile(r"\d\.\d|\d %")


def pages() -> list[Path]:
    """README and all pages of docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read() -> Figures:
    """The entries of the file, in its order."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def save(figures: Figures) -> None:
    """Write the entries."""
    FILE.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def is_measured_here(entry: dict[str, Any]) -> bool:
    """Whether benchmarks/figures.py measures the entry itself; other benchmarks measure the rest."""
    return "ours" in entry


def _measured(figures: Figures) -> str:
    chosen = [entry for entry in figures.values() if is_measured_here(entry)]
    rows = [f"| {f['what']} | {f['ours']} | {f['crfsuite'] or 'cannot promise'} | `{f['command']}` |" for f in chosen]
    head = ["| what | vcrf | CRFsuite | measured by |", "|---|---|---|---|"]
    versions = ", ".join(sorted({f["version"] for f in chosen}))
    return "\n".join([*head, *rows, "", f"Version {versions}; {chosen[0]['machine']}; one run each.", ""])


def _kept(entry: dict[str, Any]) -> str:
    command = f" by `{entry['command']}`" if entry["command"] else ""
    stamp = f"*Measured with version {entry['version']} (commit {entry['commit']}; {entry['machine']}){command}.*"
    return "\n".join([*entry["table"], *([""] if entry["table"] else []), stamp, ""])


def content(name: str, figures: Figures) -> str:
    """What stands in the block of this name."""
    return _measured(figures) if name == MEASURED else _kept(figures[name])


def written(text: str, figures: Figures) -> str:
    """The page with its blocks as the file has them."""

    def block(found: re.Match[str]) -> str:
        return f"<!-- figures: {found[1]} -->\n{content(found[1], figures)}<!-- figures: end -->\n"

    return _BLOCK.sub(block, text)


def shown(text: str) -> list[str]:
    """Names of the blocks of a page."""
    return [found[1] for found in _BLOCK.finditer(text)]


def table_of(name: str, text: str) -> list[str]:
    """Rows of the table that stands in a block now."""
    block = next(found[2] for found in _BLOCK.finditer(text) if found[1] == name)
    return [line for line in block.splitlines() if line.startswith("|")]


def sections(text: str) -> list[str]:
    """Parts of a page, from one heading of the second level to the next; code is left out."""
    return re.split(r"^(?=## )", _CODE.sub("", text), flags=re.MULTILINE)


def quantities(section: str) -> list[str]:
    """Figures in the sentences of a section, each once."""
    prose = [line for line in _BLOCK.sub("", section).splitlines() if not line.startswith("|")]
    return list(dict.fromkeys(_QUANTITY.findall(" ".join(prose))))


def loose_rows(section: str) -> Iterator[str]:
    """Rows of tables with figures that stand in no block, with the head of their table."""
    for table in re.findall(r"(?:^\|.*\n)+", _BLOCK.sub("", section), re.MULTILINE):
        head, *rows = table.splitlines()
        yield from (f"{head} {row}" for row in rows if _CELL.search(row))


def keep(name: str, facts: dict[str, str]) -> None:
    """Take the table of a block, and the figures of the sentences around it, from the page into the file."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if name in shown(text):
            section = next(part for part in sections(text) if f"figures: {name} -->" in part)
            figures = read()
            figures[name] = {"table": table_of(name, text), "said": quantities(section), **facts}
            save(figures)
            return
    raise SystemExit(f"No page has a block <!-- figures: {name} -->. Put it around the table first.")


def write_pages() -> None:
    """Write every block of every page from the file."""
    figures = read()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if written(text, figures) != text:
            page.write_text(written(text, figures), encoding="utf-8")
