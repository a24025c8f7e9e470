"""A report in parts, written as Markdown and as one HTML page that needs no other file."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Table:
    """Cells are text; `**` around a cell makes it bold. The first `n_left` columns are text, the others numbers."""

    headings: list[str]
    rows: list[list[str]]
    n_left: int = 1


@dataclass(frozen=True)
class Picture:
    """A drawing as SVG, and where the Markdown finds it."""

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Code:
    """Commands or output, as they are."""

    text: str


@dataclass(frozen=True)
class Section:
    """A title and what stands under it: paragraphs (str, with **bold** and `code`), tables, pictures, code."""

    title: str
    parts: list[str | Table | Picture | Code] = field(default_factory=list)


def to_markdown(title: str, sections: Sequence[Section], level: int = 1) -> str:
    """Markdown; pictures are files `pictures/NAME.svg` beside it."""
    blocks = [f"{'#' * level} {title}"]
    for section in sections:
        if section.parts:
            blocks += [f"{'#' * (level + 1)} {section.title}", *(_markdown(part) for part in section.parts)]
    return "\n\n".join(blocks) + "\n"


def _markdown(part: str | Table | Picture | Code) -> str:
    if isinstance(part, Table):
        rule = ["---" if i < part.n_left else "---:" for i in range(len(part.headings))]
        return "\n".join("| " + " | ".join(row) + " |" for row in [part.headings, rule, *part.rows])
    if isinstance(part, Picture):
        return f"![{part.caption}](pictures/{part.name}.svg)\n\n{part.caption}"
    if isinstance(part, Code):
        return f"```text\n{part.text}\n```"
    return part


def to_html(title: str, sections: Sequence[Section]) -> str:
    """One page with everything in it."""
    shown = [section for section in sections if section.parts]
    body = "\n".join(
        f"<section><h2>{html.escape(section.title)}</h2>\n" + "\n".join(map(_html, section.parts)) + "</section>"
        for section in shown
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def _html(part: str | Table | Picture | Code) -> str:
    if isinstance(part, Table):
        return _html_table(part)
    if isinstance(part, Picture):
        return f"<figure>{_inline(part)}<figcaption>{_text(part.caption)}</figcaption></figure>"
    if isinstance(part, Code):
        return f"<pre>{html.escape(part.text)}</pre>"
    return f"<p>{_text(part)}</p>"


def _html_table(table: Table) -> str:
    def row(cells: list[str], tag: str) -> str:
        sides = ("left" if i < table.n_left else "right" for i in range(len(cells)))
        return "".join(f'<{tag} class="{side}">{_text(cell)}</{tag}>' for cell, side in zip(cells, sides, strict=True))

    rows = "\n".join(f"<tr>{row(cells, 'td')}</tr>" for cells in table.rows)
    head = f"<thead><tr>{row(table.headings, 'th')}</tr></thead>"
    return f'<div class="wide"><table>{head}\n<tbody>{rows}</tbody></table></div>'


def _text(text: str) -> str:
    """Escaped, with **bold** and `code`."""
    escaped = html.escape(text, quote=False)
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)


def _inline(picture: Picture) -> str:
    """The drawing without its prolog, its names made different from those of the other drawings of the page."""
    svg = picture.svg[picture.svg.index("<svg") :]
    for pattern in (r'\bid="', r'href="#', r"url\(#"):
        svg = re.sub(pattern, lambda found: f"{found[0]}{picture.name}-", svg)
    return svg


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 75rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; white-space: nowrap; }
th { border-bottom: 2px solid #555; }
.left { text-align: left; } .right { text-align: right; } p { max-width: 50rem; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; } figcaption { color: #444; font-size: .9rem; }
pre { background: #f4f4f4; padding: .6rem; overflow-x: auto; } code { background: #f4f4f4; padding: 0 .2rem; }
"""
