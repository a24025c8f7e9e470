"""Learning word classes: every move is the one that brute force would make; files say what is wrong, and where."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcrf.classes import WordClasses, learn_classes, read_classes, read_lines, write_classes
from vcrf.errors import InputError
from vcrf.kernels import exchange as kernels

texts = st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=8)


def fit_of(sentences: Sequence[Sequence[str]], class_of: dict[str, int]) -> float:
    """Log-likelihood of the text under the bigram model of classes, from its definition; boundaries are class 0."""
    tokens = [""] + [token for sentence in sentences if sentence for token in (*sentence, "")]
    of = {**class_of, "": 0}
    pairs = Counter((of[a], of[b]) for a, b in pairwise(tokens))
    firsts, seconds = Counter(of[a] for a in tokens[:-1]), Counter(of[b] for b in tokens[1:])
    words = Counter(tokens[1:])
    total = 0.0
    for a, b in pairwise(tokens):
        total += math.log(pairs[of[a], of[b]] / firsts[of[a]]) + math.log(words[b] / seconds[of[b]])
    return total


def by_brute_force(sentences: Sequence[Sequence[str]], number: int, rounds: int) -> tuple[dict[str, int], float]:
    """The same algorithm with the whole likelihood computed at every step."""
    counts = Counter(token for sentence in sentences for token in sentence)
    order = sorted(counts, key=lambda word: -counts[word])
    n_classes = min(number, len(order))
    class_of = {word: min(i, n_classes) for i, word in enumerate(order, 1)}
    for _ in range(rounds):
        for word in order:
            fits = {c: fit_of(sentences, {**class_of, word: c}) for c in range(1, n_classes + 1)}
            best = max(fits.values())
            if fits[class_of[word]] < best - 1e-7:
                class_of[word] = min(c for c, fit in fits.items() if fit > best - 1e-7)
    return class_of, fit_of(sentences, class_of)


@settings(max_examples=60)
@given(texts, st.integers(2, 4))
def test_every_move_is_the_best(sentences: list[list[str]], number: int) -> None:
    """Round by round the likelihood is the one that brute force comes to, and that of the classes returned."""
    if len({word for sentence in sentences for word in sentence}) < 2:
        return
    found = learn_classes(sentences, number, min_count=1)
    n_tokens = sum(len(sentence) + 1 for sentence in sentences if sentence)
    names = sorted(set(found.classes.values()))
    numbers = {word: names.index(name) + 1 for word, name in found.classes.items()}
    assert found.history[-1].log_likelihood * n_tokens == pytest.approx(fit_of(sentences, numbers), abs=1e-8)
    _, first = by_brute_force(sentences, number, 1)
    assert found.history[0].log_likelihood * n_tokens == pytest.approx(first, abs=1e-6)
    rises = [record.log_likelihood for record in found.history]
    assert all(b >= a - 1e-12 for a, b in pairwise(rises))
    assert found.history[-1].n_moved == 0
    assert not found.is_interrupted


def test_counts_of_classes_stay_those_of_the_text() -> None:
    """After a round the tables that the kernel keeps up to date are what counting anew gives."""
    rng = np.random.default_rng(0)
    n, n_classes = 12, 4
    flat = np.concatenate([[0], rng.integers(1, n, 300), [0]])
    dense = np.zeros((n, n), np.int64)
    np.add.at(dense, (flat[:-1], flat[1:]), 1)

    def rows(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        of, ids = np.nonzero(counts)
        ptr = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=n))]).astype(np.int64)
        return ptr, ids.astype(np.uint32), counts[of, ids]

    classes = np.minimum(np.arange(n), n_classes - 1).astype(np.uint32)
    indicator = np.eye(n_classes, dtype=np.int64)[classes]
    pairs = indicator.T @ dense @ indicator
    back, totals = pairs.T.copy(), indicator.T @ np.bincount(flat[1:], minlength=n)
    table = np.array([0.0, 0.0])  # too short on purpose: the rest is computed
    counts = np.bincount(flat[1:], minlength=n)
    moved = kernels.exchange(
        np.arange(1, n, dtype=np.uint32), classes, counts, rows(dense), rows(dense.T), pairs, back, totals, table
    )
    assert moved > 0
    assert classes[0] == 0
    indicator = np.eye(n_classes, dtype=np.int64)[classes]
    assert np.array_equal(pairs, indicator.T @ dense @ indicator)
    assert np.array_equal(back, pairs.T)
    assert np.array_equal(totals, indicator.T @ np.bincount(flat[1:], minlength=n))


def test_words_between_the_same_neighbours_share_a_class() -> None:
    """Determiners, nouns and verbs of a small grammar, each word once or twice with each."""
    rng = np.random.default_rng(1)
    groups = [["the", "a", "some"], [f"n{i}" for i in range(12)], [f"v{i}" for i in range(9)]]
    sentences = [[str(rng.choice(group)) for group in groups] for _ in range(300)]
    classes = learn_classes(sentences, 5, min_count=3).classes
    found = [{classes[word] for word in group} for group in groups]
    assert len(set.union(*found)) == sum(map(len, found)) <= 5
    assert len(found[1]) < 4
    assert learn_classes(iter(sentences), 5).classes == classes  # nothing is drawn


def test_rare_words_get_no_class() -> None:
    """They count as neighbours, all as one."""
    sentences = [["a", "b"], ["a", "c"], ["a", "b"], ["d", "b"]]
    assert set(learn_classes(sentences, 2, min_count=2).classes) == {"a", "b"}
    with pytest.raises(InputError, match="two words that occur 4 times, got 0 in 8 tokens"):
        learn_classes(sentences, 2, min_count=4)
    for options in ({"number": 1}, {"number": 2.5}, {"min_count": 0}, {"min_count": True}):
        with pytest.raises(InputError, match=f"`{next(iter(options))}` must be an integer of at least"):
            learn_classes(sentences, **options)


def test_ctrl_c_keeps_the_classes_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a round; before the first one there are none."""
    rng = np.random.default_rng(2)
    sentences = [[str(rng.integers(30)) for _ in range(8)] for _ in range(100)]
    seen = []

    def stop(record: object) -> None:
        seen.append(record)
        raise KeyboardInterrupt

    found = learn_classes(sentences, 5, callback=stop)
    assert found.is_interrupted
    assert found.history == seen
    assert len(seen) == 1
    assert set(found.classes) == set(map(str, range(30)))

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels, "exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn_classes(sentences, 5)


# ---- files ----


def test_files_of_both_forms(tmp_path: Path) -> None:
    """A lexicon joins the classes of a word, over columns and lines; Brown files have trees; compressed or not."""
    lexicon = tmp_path / "lexicon.tsv"
    lexicon.write_text("run\tVERB\tNOUN\n\nthe\tDET\nrun\tADJ\n a b\tX\n", encoding="utf-8")
    table = read_classes(lexicon)
    assert [table.class_of(word) for word in ("run", "the", " a b", "a")] == ["ADJ|NOUN|VERB", "DET", "X", None]
    brown = tmp_path / "paths.gz"
    brown.write_bytes(gzip.compress(b"0010\tthe\t12\n0011\ta\t7\n1\tdog\t1\n"))
    table = read_classes(brown)
    assert table.is_tree
    assert [table.class_of(word) for word in ("the", "a", "dog")] == ["0010", "0011", "1"]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Any words without tabs and line ends."""
    classes = {"a": "c1", "é": "c2", "a b": "c1", "1": "c3"}
    write_classes(tmp_path / "w", classes)
    assert read_classes(tmp_path / "w") == WordClasses.of(classes)
    for bad in ({"a\tb": "c"}, {"": "c"}, {"a": "c\n"}):
        with pytest.raises(InputError, match="cannot be a line"):
            write_classes(tmp_path / "w", bad)
    assert read_classes(tmp_path / "w") == WordClasses.of(classes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "w: expected word classes, got an empty file"),
        ("a\tb\nonly\n", r"w:2: expected word TAB class \[TAB class \.\.\.\].*Separate by tabs"),
        ("a b\n", r"w:1: expected word TAB class"),
        ("\tb\n", r"w:1: expected word TAB class"),
        ("a\tb\t\n", r"w:1: expected word TAB class"),
        ("01\ta\t3\n\nb\tc\n", r"w:3: expected bits TAB word TAB count, as on line 1, got 'b\\tc'"),
        ("01\ta\t3\n00\ta\t4\n", r"w:2: the word 'a' has a class already"),
        ("a\tb\0\n", "w:1: expected text, got a NUL"),
    ],
)
def test_wrong_files_are_named_with_the_line(content: str, message: str, tmp_path: Path) -> None:
    """Empty, without tabs, with empty parts, mixed, twice."""
    (tmp_path / "w").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_classes(tmp_path / "w")


def test_raw_text_is_a_sentence_a_line(tmp_path: Path) -> None:
    """Blanks of any kind between tokens; empty lines are no sentences."""
    (tmp_path / "raw.txt").write_text("a  b\n\n \tc\u00a0d\r\n", encoding="utf-8")
    assert list(read_lines(tmp_path / "raw.txt")) == [["a", "b"], ["c", "d"]]
