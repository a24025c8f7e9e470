"""The files of the page. They are read once, from the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

VIEWS = ("tag", "why", "lattice", "errors", "trust", "training", "compare", "families", "label")
# In an order in which each file needs only those before it: `standalone` joins them in this order.
MODULES = (
    "dom.js", "colours.js", "charts.js", "api.js", "address.js", "views/sentence.js",
    *(f"views/{name}.js" for name in VIEWS), "app.js",
)  # fmt: skip
PAGE_FILES = ("index.html", "style.css", "icon.svg", *MODULES)


@cache
def page_file(name: str) -> bytes:
    """A file of the page; only those that are listed can be asked for."""
    if name not in PAGE_FILES:
        raise KeyError(name)
    found = files("vcrf.page").joinpath("static")
    for part in name.split("/"):
        found = found.joinpath(part)
    return found.read_bytes()
