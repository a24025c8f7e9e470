"""Graphs of sentences beyond the chain: edges between equal words, and two labels a token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import Any

from vcrf.errors import InputError
from vcrf.graphs.example import Graph

# A word that is not capitalised and has fewer letters is too frequent to say much when it comes again.
_LONG = 8


def is_telling(word: str) -> bool:
    """Whether a word that comes again is likely to have the same label: capitalised, or of eight letters and more."""
    return word[:1].isupper() or len(word) >= _LONG


def skip_chain_graph(
    features: Any, words: Sequence[str], is_linked: Callable[[str], bool] = is_telling, pairs: str = "all"
) -> Graph:
    """A chain along a sentence (or a text), and edges between places of the same word.

    Parameters
    ----------
    features : of the tokens, as the nodes of a Graph
    words : one a token
    is_linked : function from a word to bool
        Which words are joined; by default those that are capitalised or long.
    pairs : "all" or "nearest"
        Whether each place of a word is joined with all others or with the next one: fewer edges, cheaper sums.

    Returns
    -------
    Graph
        Edges of type "next" along the chain, of type "same" between places of a word.

    Examples
    --------
    >>> words = ["Ada", "met", "Bo", "when", "Ada", "sang"]
    >>> graph = skip_chain_graph([{"word": word} for word in words], words)
    >>> graph.edges[-1].tolist(), graph.edge_type[-1]
    ([0, 4], 'same')
    """
    if pairs not in ("all", "nearest"):
        raise InputError(f"`pairs` must be 'all' or 'nearest', got {pairs!r}.")
    if isinstance(words, str):
        raise InputError("`words` must be a list of words, got one str.")
    _check_length(features, len(words), "words")
    places: dict[str, list[int]] = {}
    for t, word in enumerate(words):
        if is_linked(word):
            places.setdefault(word, []).append(t)
    chain = list(pairwise(range(len(words))))
    joined = combinations if pairs == "all" else lambda found, _: pairwise(found)
    # Neighbours have an edge of the chain already.
    skips = sorted((a, b) for found in places.values() for a, b in joined(found, 2) if b > a + 1)
    return Graph(
        features, chain + skips, edge_type=["next"] * len(chain) + ["same"] * len(skips),
        places=_line(len(words), 0.0),
    )  # fmt: skip


def coupled_chains(first: Any, second: Any = None, names: tuple[str, str] = ("first", "second")) -> Graph:
    """Two labels a token, each with a chain of its own, and an edge between the two labels of a token.

    Parameters
    ----------
    first, second : features of the tokens for the one label and the other
        As the nodes of a Graph; without `second` both have the same.
    names : the types of the nodes
        For instance ("upos", "feats"). The labels of the graph are all of the first, then all of the second.

    Returns
    -------
    Graph
        Edges of type "next" along both chains, each with a table of its own, and "both" between two labels.

    Examples
    --------
    >>> graph = coupled_chains([{"word": "to"}, {"word": "run"}], names=("upos", "feats"))
    >>> graph.n_nodes, graph.edges.tolist()
    (4, [[0, 1], [2, 3], [0, 2], [1, 3]])
    """
    if len(set(names)) != 2:
        raise InputError(f"`names` must be two different types, got {names!r}.")
    n = _n_rows(first)
    other = first if second is None else second
    _check_length(other, n, "tokens of the first chain")
    chain = list(pairwise(range(n)))
    edges = [*chain, *((a + n, b + n) for a, b in chain), *((t, t + n) for t in range(n))]
    return Graph(
        {names[0]: first, names[1]: other}, edges, edge_type=["next"] * (2 * len(chain)) + ["both"] * n,
        places=_line(n, 0.0) + _line(n, -1.0),
    )  # fmt: skip


def _line(n: int, height: float) -> list[tuple[float, float]]:
    return [(float(t), height) for t in range(n)]


def _n_rows(features: Any) -> int:
    return Graph(features).n_nodes


def _check_length(features: Any, n: int, what: str) -> None:
    if _n_rows(features) != n:
        raise InputError(f"There are features of {_n_rows(features)} tokens and {n} {what}: expected as many.")
