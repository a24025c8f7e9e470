"""A picture of a labelled sentence: labels in colour, how sure they are, and why one of them was chosen.

It is written as SVG text: no library draws it, and every browser shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from zlib import crc32

from vcrf.errors import InputError
from vcrf.files import replacing
from vcrf.labelling.explain import TokenExplanation
from vcrf.labelling.reasons import first_reasons, question, shown, side

WIDTH = 860
_MARGIN, _GAP, _ROW = 24, 10, 92
_LETTER = 9.2  # mean width of a letter at 16 pixels
_BAR, _LINE = 150, 26
_FOR, _AGAINST, _INK, _PALE = "#1b7f5c", "#c2503c", "#1f2430", "#6b7280"
# Colours that differ in hue and darkness, with white letters readable on each.
COLOURS = (
    "#2f6fb0", "#1b7f5c", "#b3541e", "#7a4fb5", "#a8325e", "#5b6470", "#0f7c8a", "#8a6d00", "#3d5a80", "#9c4221",
    "#4d7c0f", "#86198f", "#0e7490", "#be123c", "#57534e", "#4338ca", "#15803d",
)  # fmt: skip


def draw_sentence(explained: Sequence[TokenExplanation], path: str | Path, top: int = 6) -> None:
    """Write a picture of an explained sentence; the least sure label gets its reasons.

    Parameters
    ----------
    explained : sequence of TokenExplanation
        What `explain` gives for a sentence.
    path : str or Path
        The file, which ends in .svg.
    top : int
        How many reasons are shown; the others are summed.
    """
    target = Path(path)
    check_is_svg(target)
    with replacing(target) as file:
        file.write(sentence_svg(explained, top).encode())


def check_is_svg(path: Path) -> None:
    """Raise InputError unless the name says SVG."""
    if path.suffix.lower() != ".svg":
        raise InputError(f"{path}: expected a picture's name that ends in .svg, got {path.suffix!r}.")


def sentence_svg(explained: Sequence[TokenExplanation], top: int = 6) -> str:
    """The picture as text."""
    if not explained:
        raise InputError("Expected an explained sentence to draw, got no token.")
    words, bottom = _words(explained)
    why, height = _why(explained, top, bottom)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">\n'
        f'<rect width="{WIDTH}" height="{height}" rx="12" fill="#ffffff"/>\n{words}{why}</svg>\n'
    )


def label_colours(labels: Sequence[object]) -> dict[object, str]:
    """A colour for each label; a label has the same in every sentence unless another one took it."""
    taken: dict[object, str] = {}
    for label in sorted(set(labels), key=str):
        first = crc32(str(label).encode())
        order = [COLOURS[(first + step) % len(COLOURS)] for step in range(len(COLOURS))]
        taken[label] = next((colour for colour in order if colour not in taken.values()), order[0])
    return taken


def _words(explained: Sequence[TokenExplanation]) -> tuple[str, int]:
    """The tokens in rows, and where they end."""
    colours = label_colours([found.label for found in explained])
    x, y, shapes = _MARGIN, _MARGIN, []
    for found in explained:
        width = int(max(len(str(found.token)), len(str(found.label)) * 0.8, 4) * _LETTER + 14)
        if x > _MARGIN and x + width > WIDTH - _MARGIN:
            x, y = _MARGIN, y + _ROW
        shapes.append(_word(found, x, y, width, colours[found.label]))
        x += width + _GAP
    return "".join(shapes), y + _ROW


def _word(found: TokenExplanation, x: int, y: int, width: int, colour: str) -> str:
    middle = x + width / 2
    return (
        _text(middle, y + 16, str(found.token), 16, _INK, "middle")
        + f'<rect x="{x}" y="{y + 26}" width="{width}" height="20" rx="5" fill="{colour}"/>\n'
        + _text(middle, y + 40, str(found.label), 12, "#ffffff", "middle", weight=600)
        + f'<rect x="{x}" y="{y + 50}" width="{width}" height="3" rx="1.5" fill="#e5e7eb"/>\n'
        + f'<rect x="{x}" y="{y + 50}" width="{width * found.probability:.1f}" height="3" rx="1.5" fill="{colour}"/>\n'
        + _text(middle, y + 68, shown(found.probability), 11, _PALE, "middle")
    )


def _why(explained: Sequence[TokenExplanation], top: int, y: int) -> tuple[str, int]:
    """The reasons of the least sure label, and the height of the whole."""
    position = min(range(len(explained)), key=lambda t: explained[t].probability)
    found = explained[position]
    listed = first_reasons(found, [other.token for other in explained], position, top)
    shapes = [
        f'<line x1="{_MARGIN}" y1="{y}" x2="{WIDTH - _MARGIN}" y2="{y}" stroke="#e5e7eb"/>\n',
        _text(_MARGIN, y + 28, question(found), 15, _INK, weight=600),
    ]
    largest = max((abs(reason.value) for reason in listed), default=1.0)
    y += 44
    for reason in listed:
        length = max(2.0, _BAR * abs(reason.value) / largest)
        colour, label = _FOR if reason.value >= 0.0 else _AGAINST, side(reason, found)
        shapes += [
            _text(_MARGIN + 100, y + 14, f"for {label}", 12, colour, "end"),
            f'<rect x="{_MARGIN + 110}" y="{y + 2}" width="{length:.1f}" height="15" rx="3" fill="{colour}"/>\n',
            _text(_MARGIN + 120 + _BAR, y + 14, reason.text, 13, _INK),
        ]
        y += _LINE
    return "".join(shapes), y + _MARGIN


def _text(x: float, y: float, text: str, size: int, colour: str, anchor: str = "start", weight: int = 400) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{escape(text)}</text>\n'
    )
