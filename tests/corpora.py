"""Strategies for small corpora and families, and what the definitions say about them, read naively.

A corpus is a list of sentences; its positions count the tokens of all sentences in order, as in vcrf. An
attribute is known by its content (a tuple of what its template reads, or its string), never by a hash.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from vcrf.families import NamedFeature, Template
from vcrf.families.text import WORD_FUNCTIONS

# Outside the sentence: equal to no word, the empty one included.
BOUNDARY = ("outside",)

# Few letters, so that words repeat and share affixes; two bytes, three bytes, and beyond the first plane.
words = st.one_of(
    st.sampled_from(["a", "b", "ab", "ba", "é", "Ab-1"]), st.text(alphabet="abé世😀", min_size=1, max_size=4)
)
sentences = st.lists(st.lists(words, max_size=6), min_size=1, max_size=6)
# The empty word is a word too, though no tokeniser gives it.
odd_sentences = st.lists(st.lists(st.one_of(st.just(""), words), max_size=6), min_size=1, max_size=6)

READINGS = ["word", "prefix:1", "prefix:2", "suffix:1", "suffix:2", "suffix:3", "boundary", *WORD_FUNCTIONS]
parts = st.lists(st.tuples(st.integers(-2, 2), st.sampled_from(READINGS)), max_size=3).map(tuple)
templates = st.builds(Template, parts, st.booleans())
template_lists = st.lists(templates, max_size=6, unique=True)

# Feature dicts: one value a token (a, b, t), several (s), numbers (n, v). Numbers differ from 1, so that a
# feature is either an indicator or a number.
_strings = st.sampled_from(["x", "y", "z"])
_numbers = st.sampled_from([-2.0, 0.5, 3.0, 0.0])
feature_dicts = st.fixed_dictionaries(
    {},
    optional={
        "a": _strings,
        "b": _strings,
        "t": st.booleans(),
        "s": st.sets(_strings),
        "n": _numbers,
        "v": st.dictionaries(_strings, _numbers),
    },
)
dict_sentences = st.lists(st.lists(feature_dicts, max_size=5), min_size=1, max_size=5)


def tokens_of(corpus: list[list[Any]]) -> Iterator[tuple[int, list[Any], int]]:
    """Position, sentence and index in the sentence of every token."""
    position = 0
    for sentence in corpus:
        for index in range(len(sentence)):
            yield position, sentence, index
            position += 1


def read_word(reading: str, word: str) -> str | None:
    """Return what a reading sees of a word; None if there is nothing to see."""
    kind, _, size = reading.partition(":")
    if kind == "boundary":
        return None
    if kind in ("prefix", "suffix"):
        if len(word) < int(size):
            return None
        return word[: int(size)] if kind == "prefix" else word[len(word) - int(size) :]
    return word if kind == "word" else WORD_FUNCTIONS[kind](word)


def read_template(template: Template, sentence: list[str], index: int) -> tuple[Any, ...] | None:
    """Content of a template's attribute at a token; None if there is none."""
    seen: list[Any] = []
    for offset, reading in template.parts:
        if 0 <= index + offset < len(sentence):
            seen.append(read_word(reading, sentence[index + offset]))
        else:
            seen.append(BOUNDARY if template.pad else None)
    return None if None in seen else tuple(seen)


def flatten(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """Attribute strings and values of one feature, as sklearn-crfsuite gives them."""
    if isinstance(value, str):
        yield f"{name}:{value}", 1.0
    elif isinstance(value, dict):
        for key in value:
            yield from flatten(f"{name}:{key}", value[key])
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield f"{name}:{item}", 1.0
    else:
        yield name, float(value)


def totals(name: str, token: dict[str, Any]) -> dict[str, float]:
    """Attributes of one feature of a token: repeats add up."""
    total: Counter[str] = Counter()
    for attribute, value in flatten(name, token[name]) if name in token else ():
        total[attribute] += value  # type: ignore[assignment]
    return dict(total)


def read_named(name: str, token: dict[str, Any]) -> dict[str, float]:
    """Attributes of one feature of a token; zeros do not count."""
    return {attribute: value for attribute, value in totals(name, token).items() if value != 0.0}


def occurrences(source: Any, corpus: list[list[Any]]) -> dict[Any, dict[int, float]]:
    """Content of each attribute of a source -> {position: value}."""
    found: dict[Any, dict[int, float]] = defaultdict(dict)
    for position, sentence, index in tokens_of(corpus):
        if isinstance(source, NamedFeature):
            for attribute, value in read_named(source.name, sentence[index]).items():
                found[attribute][position] = value
        else:
            content = read_template(source, sentence, index)
            if content is not None:
                found[content][position] = 1.0
    return dict(found)


def zeros(source: Any, corpus: list[list[Any]]) -> dict[Any, list[int]]:
    """Content of each attribute of a source -> the positions where it is given with value 0."""
    found: dict[Any, list[int]] = defaultdict(list)
    for position, sentence, index in tokens_of(corpus) if isinstance(source, NamedFeature) else ():
        for attribute, value in totals(source.name, sentence[index]).items():
            if value == 0.0:
                found[attribute].append(position)
    return dict(found)


def merged_columns(sources: list[Any], corpus: list[list[Any]]) -> Counter[tuple[Any, tuple[int, ...]]]:
    """Count (occurrences, sources): attributes that occur alike are one, but never two of one source."""
    members: dict[Any, Counter[int]] = defaultdict(Counter)
    for i, source in enumerate(sources):
        for where in occurrences(source, corpus).values():
            members[frozenset(where.items())][i] += 1
    columns: Counter[tuple[Any, tuple[int, ...]]] = Counter()
    for where, counts in members.items():
        for copy in range(max(counts.values())):
            columns[where, tuple(sorted(i for i in counts if counts[i] > copy))] += 1
    return columns


def patterns(labels: list[int], corpus: list[list[Any]], k: int) -> dict[int, tuple[int, ...]]:
    """Return the k labels that end at each position that has them in its sentence."""
    return {
        position: tuple(labels[position - k + 1 : position + 1])
        for position, _, index in tokens_of(corpus)
        if index >= k - 1
    }
