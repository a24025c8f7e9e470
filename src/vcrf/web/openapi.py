"""The description of the interface, written by hand; a test holds it against the routes."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def openapi_text() -> str:
    """The document as text."""
    return files("vcrf.web").joinpath("openapi.json").read_text(encoding="utf-8")
