"""
Words that are repeated
=======================

Repeated words: a name is clear in one place and not in another; an edge between the two carries the label over.

Invented reports name a person or a town twice, once after a word that tells which, once after one that does not.
"""

from __future__ import annotations

import sys

import numpy as np

from vcrf import Graph, GraphCRF
from vcrf.graphs import draw_tables, skip_chain_graph

CLUES = {"PERSON": ["madam", "doctor"], "TOWN": ["in", "near"]}
FILLERS = ["the", "old", "rain", "came", "and", "went", "again", "today"]


def draw_report(rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """Words and labels; names are made of syllables, so that most are new."""
    label = ("PERSON", "TOWN")[rng.integers(2)]
    name = "".join(rng.choice(["ba", "lo", "ki", "mu", "ne", "ro"], 3)).capitalize()
    places = [[str(rng.choice(CLUES[label])), name], [str(rng.choice(["of", "about"])), name]]
    rng.shuffle(places)
    words, labels = [], []
    for pair in places:
        filler = rng.choice(FILLERS, rng.integers(2, 5)).tolist()
        words += [*filler, *pair]
        labels += ["O"] * (len(filler) + 1) + [label]
    return words, labels


def features_of(words: list[str]) -> list[dict[str, str | bool]]:
    """The word, the one before it, and whether it is a name."""
    return [
        {"word": word.lower(), "before": before.lower(), "is name": word[0].isupper()}
        for before, word in zip(["<start>", *words], words, strict=False)
    ]


def main(picture: str | None = None) -> None:
    """A chain, and a chain with skips."""
    rng = np.random.default_rng(0)
    reports = [draw_report(rng) for _ in range(300)]
    y = [labels for _, labels in reports]
    skips = [skip_chain_graph(features_of(words), words) for words, _ in reports]
    chains = [
        Graph(graph.nodes, graph.edges[: graph.n_nodes - 1], edge_type=["next"] * (graph.n_nodes - 1))
        for graph in skips
    ]
    for name, X in (("chain", chains), ("skip chain", skips)):
        crf = GraphCRF().fit(X[:100], y[:100])
        found = crf.predict(X[100:])
        names = [a == b for x, z in zip(found, y[100:], strict=True) for a, b in zip(x, z, strict=True) if b != "O"]
        print(f"{name}: {np.mean(names):.1%} of the names right")
    table = crf.model_.table("same bias")
    print(f"two places of a name: {np.diag(table).mean() - table.mean():+.2f} for the same label")
    if picture:
        draw_tables(crf, picture)


if __name__ == "__main__":
    main(*sys.argv[1:2])
