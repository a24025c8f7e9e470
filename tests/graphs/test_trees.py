"""Dependency trees: what is read, and the line of what is wrong."""

from __future__ import annotations

import gzip
import io
import re

import pytest

from vcrf.errors import InputError
from vcrf.graphs import read_trees

# Invented: words, UPOS, FEATS, HEAD, DEPREL.
WORDS = [
    ("Mira", "PROPN", "Case=Nom", 2, "nsubj"),
    ("sold", "VERB", "Tense=Past", 0, "root"),
    ("her", "PRON", "_", 4, "det"),
    ("boats", "NOUN", "Number=Plur", 2, "obj"),
]


def conllu(words=WORDS, comment: str = "") -> str:
    """A sentence as text."""
    rows = [f"{i}\t{w}\t_\t{u}\tX{u}\t{f}\t{h}\t{d}\t_\t_" for i, (w, u, f, h, d) in enumerate(words, 1)]
    return "\n".join([*([comment] if comment else []), *rows]) + "\n"


def read(text: str, **options):
    """The trees of a text."""
    return read_trees(io.StringIO(text), **options)


def test_edges_run_from_heads_to_dependents() -> None:
    """Left where the dependent stands before its head."""
    trees = read(conllu())
    (graph,) = trees.graphs
    found = dict(zip(map(tuple, graph.edges.tolist()), graph.edge_type, strict=True))
    assert found == {(1, 0): "left", (3, 2): "left", (1, 3): "right"}
    assert trees.labels == [["nsubj", "root", "det", "obj"]]
    assert trees.words == [["Mira", "sold", "her", "boats"]]
    assert trees.sources == ["<stream>:1"]
    assert graph.places == [(0.0, -1.0), (1.0, 0.0), (2.0, -2.0), (3.0, -1.0)]


@pytest.mark.parametrize(("label", "column"), [("upos", 1), ("feats", 2), ("deprel", 4)])
def test_labels_of_each_field(label: str, column: int) -> None:
    """UPOS is a feature unless it is the label; FEATS may be none."""
    trees = read(conllu(), label=label)
    assert trees.labels[0] == [word[column] for word in WORDS]
    node = trees.graphs[0].nodes[2]
    assert (node["word"], node["suffix:2"], node["shape"], node["to head"]) == ("her", "er", "x", "+1")
    assert (node["head lower"], node["before lower"], node["after suffix"]) == ("boats", "sold", "ts")
    assert ("upos" in node) == ("head upos" in node) == (label != "upos")


def test_labels_never_leak_into_features() -> None:
    """Another value of the field that is to be predicted changes no feature."""
    for label, column in (("upos", 1), ("feats", 2), ("deprel", 4)):
        other = [tuple("Zz" if i == column else value for i, value in enumerate(word)) for word in WORDS]
        assert read(conllu(), label=label).graphs[0].nodes == read(conllu(other), label=label).graphs[0].nodes


def test_other_edges_keep_the_features() -> None:
    """Chain, both, none."""
    by_kind = {kind: read(conllu(), edges=kind).graphs[0] for kind in ("tree", "chain", "both", "none")}
    assert [len(graph.edges) for graph in by_kind.values()] == [3, 3, 6, 0]
    assert by_kind["chain"].edge_type == ["next"] * 3
    assert all(graph.nodes == by_kind["tree"].nodes for graph in by_kind.values())


def test_splits_ranges_and_compressed_files(tmp_path) -> None:
    """As other readers; several roots are fine."""
    two = [("a", "X", "_", 0, "r"), ("b", "X", "_", 0, "r")]
    text = (
        conllu(comment="# split = train")
        + "\n"
        + conllu(two, "# split = test").replace("1\ta", "1-2\tab" + "\t_" * 8 + "\n1\ta")
    )
    path = tmp_path / "trees.conllu.gz"
    path.write_bytes(gzip.compress(text.encode()))
    trees = read_trees(path, split="test")
    assert (trees.words, len(trees.graphs[0].edges)) == ([["a", "b"]], 0)
    assert trees.sources == [f"{path}:9"]
    assert len(read_trees(path).graphs) == 2


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (("2\tsold\t_\tVERB\tXVERB\tTense=Past\t0", "2\tsold\t_\tVERB\tXVERB\tTense=Past\tx"), 3, "HEAD .* got 'x'"),
        (("\t0\troot", "\t_\troot"), 3, "HEAD the number of a word, or 0 for a root, got '_'"),
        (("\t0\troot", "\t-1\troot"), 3, "got '-1'"),
        (("\t0\troot", "\t9\troot"), 3, "HEAD is 9, but the sentence has 4 words"),
        (("\t0\troot", "\t1\troot"), 2, "word 1 .Mira. hangs on itself .* expected a tree, got a cycle"),
        (("\t0\troot", "\t2\troot"), 3, "word 2 .sold. hangs on itself"),
        (("\troot", "\t_"), 3, "expected a label in DEPREL, got '_'"),
        (("\troot\t_\t_", "\troot"), 3, "expected 10 tab-separated fields"),
        (("2\tsold", "3\tsold"), 3, "expected ID 2"),
    ],
)
def test_errors_name_the_line(change: tuple[str, str], line: int, message: str) -> None:
    """Line numbers count comments."""
    text = conllu(comment="# invented").replace(*change)
    with pytest.raises(InputError, match=f"^<stream>:{line}: .*{message}"):
        read(text)


def test_arguments_that_are_wrong() -> None:
    """Named with what is possible."""
    with pytest.raises(InputError, match=re.escape("`label` must be one of 'deprel', 'upos', 'feats', 'xpos'")):
        read(conllu(), label="lemma")
    with pytest.raises(InputError, match="`edges` must be one of 'tree'"):
        read(conllu(), edges="forest")
    with pytest.raises(InputError, match="no sentences"):
        read("")


def test_a_treebank(treebank) -> None:
    """Every sentence of the Tamil trees has words less roots as its edges."""
    path = treebank("graphs/tamil-trees")
    trees = read_trees(path, split="test")
    assert len(trees.graphs) == 120
    for graph, labels in zip(trees.graphs, trees.labels, strict=True):
        roots = sum(node["to head"] == "root" for node in graph.nodes)
        assert len(graph.edges) == len(labels) - roots
