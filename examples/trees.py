"""
Dependency trees
================

Dependency trees of an invented language: the relation of a word follows from that of its head.

A word below an object is called something else than the same word below a subject, and which of the two nouns is the
subject is told by the verb's ending alone. The argument, if there is one, is the path of a picture of a labelled tree.
"""

from __future__ import annotations

import io
import sys

import numpy as np

from vcrf import GraphCRF
from vcrf.graphs import draw_graph, read_trees

NOUNS, ADJECTIVES, VERBS = ["bolo", "karo", "sumi", "tanu"], ["ri", "lo", "va"], ["mek", "dur", "fil"]


def draw_sentence(rng: np.random.Generator) -> str:
    """Adjectives of both nouns in any order, two nouns, a verb; its ending -a or -o says which noun acts."""
    is_first = rng.random() < 0.5
    relations = ("subj", "obj") if is_first else ("obj", "subj")
    owners = rng.integers(0, 2, rng.integers(1, 5)).tolist()
    n = len(owners)
    rows = [(rng.choice(ADJECTIVES), "ADJ", n + 1 + owner, f"{relations[owner]}:mod") for owner in owners]
    rows += [(rng.choice(NOUNS), "NOUN", n + 3, relation) for relation in relations]
    rows.append((rng.choice(VERBS) + ("a" if is_first else "o"), "VERB", 0, "root"))
    return "".join(f"{i}\t{w}\t_\t{u}\t_\t_\t{h}\t{d}\t_\t_\n" for i, (w, u, h, d) in enumerate(rows, 1))


def main(path: str | None = None) -> None:
    """Label the relations with the tree, along the sentence, and word by word."""
    rng = np.random.default_rng(0)
    train, test = ("\n".join(draw_sentence(rng) for _ in range(n)) for n in (80, 200))
    for edges in ("none", "chain", "tree"):
        X, y, *_ = read_trees(io.StringIO(train), "deprel", edges=edges)
        X_test, y_test, *_ = read_trees(io.StringIO(test), "deprel", edges=edges)
        crf = GraphCRF().fit(X, y)
        print(
            f"{edges:5s}: {crf.score(X_test, y_test):.1%} of the relations right, gap {crf.gap_ / crf.objective_:.1e}"
        )
    if path is not None:
        draw_graph(X_test[0], marginals=crf.predict_marginals(X_test[:1])[0], path=path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
