"""Graphs of dependency trees: CoNLL-U files whose words hang on each other."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from vcrf.data.blocks import LineBlock, select_split, split_blocks
from vcrf.data.conllu import FIELDS, FORM_FIELD, word_rows
from vcrf.data.text import Source, read_text
from vcrf.errors import InputError
from vcrf.families.text import WORD_FUNCTIONS
from vcrf.graphs.example import Graph

LABEL_FIELDS = {name: FIELDS.index(name.upper()) for name in ("deprel", "upos", "feats", "xpos")}
EDGES = ("tree", "chain", "both", "none")
_HEAD, _UPOS = FIELDS.index("HEAD"), FIELDS.index("UPOS")
_NUMBER = re.compile(r"[0-9]{1,9}")
_AFFIXES = (1, 2, 3)
_shape = WORD_FUNCTIONS["shape"]


class Trees(NamedTuple):
    """Sentences of a file: a graph and labels each, the words, and where the first of them stands (file:line)."""

    graphs: list[Graph]
    labels: list[list[str]]
    words: list[list[str]]
    sources: list[str]


class _Word(NamedTuple):
    """A word with the number of its line and of its head (-1: none)."""

    line: int
    form: str
    upos: str
    label: str
    head: int


def read_trees(
    path: Source, label: str = "deprel", split: str | Collection[str] | None = None, edges: str = "tree"
) -> Trees:
    r"""Read dependency trees from CoNLL-U: a node for each word, an edge from each head to its dependents.

    Parameters
    ----------
    path : str, path, or open stream
        Plain or compressed, as for `read_corpus`. Several roots, or none in a sentence without heads, are fine.
    label : "deprel", "upos", "feats" or "xpos"
        The field that is to be predicted. Without features FEATS is "_", a label as others.
    split : str or collection of str, optional
        Keep the sentences whose comment `# split = NAME` has this name, or one of these.
    edges : "tree", "chain", "both" or "none"
        Edges of the tree have the type "left" where the dependent stands before its head, else "right"; those of the
        chain have the type "next". For comparison: the features stay the same.

    Returns
    -------
    Trees
        graphs, labels, words, sources. A node is described by its word, lower case, affixes, shape and UPOS (unless
        that is the label), how far its head is, and the same in short of the head and of the neighbours.

    Raises
    ------
    InputError
        With file and line: a malformed line, a HEAD that is no number or beyond the sentence, a cycle, no label.

    Examples
    --------
    >>> import io
    >>> text = "1\tcats\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tsleep\t_\tVERB\t_\t_\t0\troot\t_\t_\n"
    >>> trees = read_trees(io.StringIO(text))
    >>> trees.graphs[0].edges.tolist(), trees.graphs[0].edge_type, trees.labels
    ([[1, 0]], ['left'], [['nsubj', 'root']])
    """
    if label not in LABEL_FIELDS:
        raise InputError(f"`label` must be one of {', '.join(map(repr, LABEL_FIELDS))}, got {label!r}.")
    if edges not in EDGES:
        raise InputError(f"`edges` must be one of {', '.join(map(repr, EDGES))}, got {edges!r}.")
    text = read_text(path)
    blocks: Iterable[LineBlock] = split_blocks(text.content)
    chosen = blocks if split is None else select_split(blocks, split, text.name)
    found = trees_of(chosen, text.name, label, edges)
    if not found.graphs:
        raise InputError(f"{text.name}: no sentences. Expected CoNLL-U. Check that this is the right file.")
    return found


def trees_of(
    blocks: Iterable[LineBlock], name: str, label: str, edges: str = "tree", is_labelled: bool = True
) -> Trees:
    """The trees of a file's sentences; without labels nothing is asked of their field."""
    found = Trees([], [], [], [])
    for words in _sentences(blocks, name, label, is_labelled):
        found.graphs.append(_graph(words, label != "upos", edges))
        found.labels.append([word.label for word in words])
        found.words.append([word.form for word in words])
        found.sources.append(f"{name}:{words[0].line}")
    return found


def _sentences(blocks: Iterable[LineBlock], name: str, label: str, is_labelled: bool) -> Iterator[list[_Word]]:
    field = LABEL_FIELDS[label]
    for block in blocks:
        rows = word_rows(block, name)
        words = []
        for index, row in rows:
            line = block.first_line + index
            where = f"{name}:{line}"
            form, head = _filled(row[FORM_FIELD], "FORM", where), _head(row[_HEAD], len(rows), where)
            own = _label(row[field], label, where) if is_labelled else row[field]
            words.append(_Word(line, form, row[_UPOS], own, head))
        if words:
            _check_cycles(words, name)
            yield words


def _filled(value: str, name: str, where: str) -> str:
    if not value:
        raise InputError(f"{where}: expected a token in {name}, got an empty field. Fill it in, or write '_'.")
    return value


def _label(value: str, label: str, where: str) -> str:
    if value == "" or (value == "_" and label != "feats"):
        raise InputError(f"{where}: expected a label in {label.upper()}, got {value!r}. Fill it in, or read another.")
    return value


def _head(value: str, n_words: int, where: str) -> int:
    if not _NUMBER.fullmatch(value):
        raise InputError(
            f"{where}: expected in HEAD the number of a word, or 0 for a root, got {value!r}. Fill in the tree."
        )
    if int(value) > n_words:
        raise InputError(f"{where}: HEAD is {int(value)}, but the sentence has {n_words} words.")
    return int(value) - 1


def _check_cycles(words: list[_Word], name: str) -> None:
    """Follow the heads from each word: 1 is on the way, 2 is known to end at a root."""
    state = [0] * len(words)
    for start in range(len(words)):
        way, at = [], start
        while at >= 0 and state[at] == 0:
            state[at] = 1
            way.append(at)
            at = words[at].head
        if at >= 0 and state[at] == 1:
            raise InputError(
                f"{name}:{words[at].line}: word {at + 1} ({words[at].form}) hangs on itself by way of its heads: "
                "expected a tree, got a cycle."
            )
        for v in way:
            state[v] = 2


def _graph(words: list[_Word], reads_upos: bool, edges: str) -> Graph:
    tree = [(word.head, v) for v, word in enumerate(words) if word.head >= 0] if edges in ("tree", "both") else []
    chain = list(pairwise(range(len(words)))) if edges in ("chain", "both") else []
    types = ["left" if v < head else "right" for head, v in tree] + ["next"] * len(chain)
    nodes = [_features(words, v, reads_upos) for v in range(len(words))]
    return Graph(nodes, tree + chain, edge_type=types, places=_places(words))


def _features(words: list[_Word], v: int, reads_upos: bool) -> dict[str, Any]:
    word = words[v].form
    found: dict[str, Any] = {"word": word, "lower": word.lower(), "shape": _shape(word)}
    for k in _AFFIXES:
        if len(word) >= k:
            found[f"prefix:{k}"], found[f"suffix:{k}"] = word[:k].lower(), word[-k:].lower()
    head = words[v].head
    found["to head"] = "root" if head < 0 else f"{max(-5, min(5, head - v)):+d}"
    if reads_upos:
        found["upos"] = words[v].upos
    for place, other in (("head", head), ("before", v - 1), ("after", v + 1)):
        if not 0 <= other < len(words):
            found[f"{place} lower"] = "<none>"
            continue
        near = words[other]
        found[f"{place} lower"], found[f"{place} suffix"] = near.form.lower(), near.form[-2:].lower()
        if reads_upos:
            found[f"{place} upos"] = near.upos
            found[f"upos, {place} upos"] = f"{words[v].upos} {near.upos}"
    return found


def _places(words: list[_Word]) -> list[tuple[float, float]]:
    """Words from left to right, each one step below its head."""
    depths = [-1] * len(words)
    for v in range(len(words)):
        way, at = [], v
        while at >= 0 and depths[at] < 0:
            way.append(at)
            at = words[at].head
        depth = depths[at] if at >= 0 else -1
        for u in reversed(way):
            depth += 1
            depths[u] = depth
    return [(float(v), -float(depth)) for v, depth in enumerate(depths)]
