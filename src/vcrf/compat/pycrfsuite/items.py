"""The tokens of a sentence, flattened once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from vcrf.arguments.inputs import as_sentences
from vcrf.families.reading import Reader


class ItemSequence:
    """Tokens as {attribute: value}.

    Examples
    --------
    >>> ItemSequence([["foo"], {"bar": {"baz": 1}}]).items()
    [{'foo': 1.0}, {'bar:baz': 1.0}]
    """

    def __init__(self, pyseq: Iterable[Any]) -> None:
        reader = Reader()
        sizes, entries = reader.read(as_sentences([pyseq]))
        given = list(zip(reader.names, reader.values, strict=True))
        found = iter(entries.tolist())
        self._items = [dict(given[entry] for entry in islice(found, n)) for n in sizes.tolist()]

    def items(self) -> list[dict[str, float]]:
        """One dict of attributes and values a token."""
        return self._items

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"
