"""Pages that need no service: the page's own files and the answers that it would ask for, all in one file of HTML.

The modules are joined in the order of `MODULES`: each becomes a function of its own whose exports are constants of the
page. A policy in the page allows this very code and this very style, and no address at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcrf.files import replacing_text
from vcrf.page.files import MODULES, page_file
from vcrf.page.plain import to_json

_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A page as one file: `str` gives its text, a notebook shows it.

    Parameters
    ----------
    html : the text
    height : pixels that it has in a notebook
    """

    html: str
    height: int = 560

    def __str__(self) -> str:
        return self.html

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its style and code touch nothing of the notebook."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts" width="100%" height="{self.height}" '
            'title="vcrf" style="border:0"></iframe>'
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        with replacing_text(Path(path)) as file:
            file.write(self.html.encode())


def standalone(title: str, views: Sequence[str], answers: Mapping[str, Any], height: int = 560, **app: Any) -> Page:
    """A page with some of the views.

    Parameters
    ----------
    title : of the page
    views : names of views, the first is shown first
    answers : what the service would answer, by path below /api/v1
    height : of the frame in a notebook
    app : what the page knows besides: models, labels, data
    """
    style, code = page_file("style.css").decode(), joined_modules()
    # In a script "<" could end it, or begin a comment; JSON has another way to write it.
    data = to_json({"answers": answers, "app": {"views": list(views), **app}})
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    policy = (
        f"default-src 'none'; script-src '{_digest(code)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#main">Skip to the content</a>\n'
        f'<header class="top"><div class="brand"><span>{html.escape(title)}</span></div>'
        '<nav id="views" aria-label="Views"></nav><div class="controls" id="controls"></div></header>\n'
        '<main id="main" tabindex="-1"></main>\n<div id="said" class="unseen" role="status" aria-live="polite"></div>\n'
        f'<script type="application/json" id="data">{data}</script>\n<script type="module">{code}</script>\n'
        "</body>\n</html>\n"
    )
    return Page(text, height)


def joined_modules() -> str:
    """All modules as one."""
    parts = []
    for name in MODULES:
        text = _IMPORT.sub("", page_file(name).decode())
        exports = ", ".join(_EXPORT.findall(text))
        body = _EXPORT.sub("", text)
        parts.append(f"const {{{exports}}} = (() => {{\n{body}\nreturn {{{exports}}};\n}})();\n")
    return "\n".join(parts)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
