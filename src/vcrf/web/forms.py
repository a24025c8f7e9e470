"""The fields of a form, as browsers and `curl -F` send them."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from vcrf.web.limits import Refused

_MOST_FIELDS = 32
_NAME = re.compile(rb'[;\s]name="([^"\r\n]*)"', re.IGNORECASE)


def form_fields(content_type: str, body: bytes) -> dict[str, bytes]:
    """Fields by name, as bytes: whether they are text is for whom they are meant to say."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return _multipart(content_type, body)
    if kind in ("application/x-www-form-urlencoded", ""):
        return query_fields(body)
    raise Refused(415, f"Expected a form, urlencoded or multipart/form-data, got {kind[:60]!r}.")


def query_fields(query: bytes) -> dict[str, bytes]:
    """Fields of a query, or of a form that is written like one."""
    # Not parse_qsl: of bytes it reads ASCII only.
    parts = [part.partition(b"=") for part in query.split(b"&") if part]
    if len(parts) > _MOST_FIELDS:
        raise Refused(400, f"Expected at most {_MOST_FIELDS} fields, got {len(parts):,}.")
    return {_unquoted(name).decode("utf-8", "replace"): _unquoted(value) for name, _, value in parts}


def _unquoted(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))


def _multipart(content_type: str, body: bytes) -> dict[str, bytes]:
    found = re.search(r'boundary="?([^";,\s]{1,70})"?', content_type)
    if found is None:
        raise Refused(400, "multipart/form-data: expected a boundary in Content-Type, got none.")
    mark = b"--" + found[1].encode()
    # The first boundary has no line before it; the last is followed by two more dashes.
    parts = (b"\r\n" + body).split(b"\r\n" + mark, _MOST_FIELDS + 1)
    if len(parts) < 2 or not parts[-1].startswith(b"--"):
        raise Refused(400, f"multipart/form-data: expected at most {_MOST_FIELDS} fields and a last boundary.")
    fields = {}
    for part in parts[1:-1]:
        head, _, value = part.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if name is not None:
            # Text in a form has the line ends of mail, whatever it had before; a file has its own.
            is_file = b"filename=" in head.lower()
            fields[name[1].decode("utf-8", "replace")] = value if is_file else value.replace(b"\r\n", b"\n")
    return fields
