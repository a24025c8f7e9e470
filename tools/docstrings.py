"""Our docstrings for Sphinx: they are plain text with formulas, which reStructuredText would take for markup."""

from __future__ import annotations

import re
from typing import Any

_UNDERLINE = re.compile(r"-{3,}\s*")
_CODE = re.compile(r"(`+[^`]*`+)")
# References into the docs of scikit-learn, in methods that are inherited from it.
_ROLE = re.compile(r":(?:ref|term):`([^`<]+?)\s*(?:<[^>]*>)?`")
_FREE = {"", "Notes"}


def as_rst(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    """Make indented formulas literal, and protect the characters that mark up text; in place, as autodoc asks."""
    lines[:] = converted([_ROLE.sub(r"\1", line) for line in lines])


def converted(lines: list[str]) -> list[str]:
    """The lines of a docstring in reStructuredText that numpydoc reads."""
    out: list[str] = []
    section, is_block = "", False
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line and _UNDERLINE.fullmatch(following):
            section = line.strip()
        is_indented = line.startswith("    ")
        if section in _FREE and is_indented and not is_block and (not out or not out[-1].strip()):
            out += ["::", ""]
            is_block = True
        elif line.strip() and not is_indented:
            is_block = False
        keeps = is_block or section == "Examples" or _UNDERLINE.fullmatch(line) or line.startswith((">>>", "..."))
        out.append(line if keeps or _is_header(line, section) else escaped(line))
    return out


def _is_header(line: str, section: str) -> bool:
    """A line `name : type` of a list of parameters; numpydoc knows what to do with it."""
    return section not in _FREE and not line.startswith(" ") and " : " in line and "|" not in line and "*" not in line


def escaped(line: str) -> str:
    """Protect what is outside of code."""
    parts = _CODE.split(line)
    return "".join(part if i % 2 else _protected(part) for i, part in enumerate(parts))


def _protected(text: str) -> str:
    return re.sub(r"(?<=\w)_(?!\w)", r"\\_", re.sub(r"([*|])", r"\\\1", text))
