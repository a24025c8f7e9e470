"""Scores of word types: the same as reading every attribute at every token, within a bound, from many threads."""

from __future__ import annotations

import copy
import pickle
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
from vcrf import VCRF, load, read_corpus
from vcrf.decoding import words
from vcrf.decoding.potentials import Potentials
from vcrf.errors import InputError
from vcrf.families import BIAS, END, START, Template, default_families, intern_sentences, paper_families
from vcrf.families.family import Family, Source
from vcrf.labelling.tagger import ModelTagger
from vcrf.model import Model

LABELS = ["A", "B", "C"]
TRAIN = [["the", "cat", "sat"], ["a", "cat"], ["The", "dogs", "ran", "home", "-5"], ["ran"], ["a", "dog"]]
NEW = [["the", "dog", "cats"], ["zzz"], ["home"], [], ["-6", "a", "a", "xcat"], ["the", "cat", "sat"]]


def weighted(sources: list[Source], corpus: list[list[str]], order: int, seed: int, share: float = 0.7) -> Model:
    """Model with a random weight, a multiple of 1/8, for some attributes of a corpus and some patterns.

    Templates without padding get weights for what lies outside the sentence too: they must not see it.
    """
    rng = np.random.default_rng(seed)
    text = intern_sentences(corpus)
    keys: list[int] = []
    entries: list[tuple[int, int, float]] = []
    ptr, source_ptr = [0], [0]
    for source in sources:
        padded = replace(source, pad=True) if isinstance(source, Template) else source
        for key in np.unique(padded.read(text).keys).tolist():
            if rng.random() < share:
                patterns = {(k, int(rng.integers(len(LABELS) ** k))) for k in rng.integers(1, order + 1, 3).tolist()}
                entries += [(k, code, float(rng.integers(-16, 17)) / 8.0) for k, code in sorted(patterns)]
                keys.append(key)
                ptr.append(len(entries))
        source_ptr.append(len(keys))
    lengths, codes, weights = (list(column) for column in zip(*entries, strict=True)) if entries else ([], [], [])
    return Model(
        labels=list(LABELS),
        sources=sources,
        family_of=np.zeros((len(sources), order + 1), np.int64),
        families=[],
        source_ptr=np.array(source_ptr, np.int64),
        keys=np.array(keys, np.uint64),
        names=[""] * len(keys),
        ptr=np.array(ptr, np.int64),
        lengths=np.array(lengths, np.uint32),
        codes=np.array(codes, np.uint32),
        weights=np.array(weights, np.float64),
    )


def default_model(order: int = 2, seed: int = 0) -> Model:
    """Random weights on the default families of a small corpus."""
    sources = dict.fromkeys(source for family in default_families(tags=order) for source in family.sources)
    return weighted(list(sources), TRAIN, order, seed)


def patterns_at(scores: Potentials, t: int) -> list[tuple[int, int, float]]:
    """Sorted longer patterns of a token."""
    of_token = slice(scores.local.ptr[t], scores.local.ptr[t + 1])
    parts = (scores.local.size[of_token], scores.local.code[of_token], scores.local.score[of_token])
    return sorted(zip(*(part.tolist() for part in parts), strict=True))


def assert_same(scores: Potentials, slow: Potentials) -> None:
    """Weights are multiples of 1/8: sums are exact in any order, and so are ties."""
    np.testing.assert_array_equal(scores.sent_ptr, slow.sent_ptr)
    np.testing.assert_array_equal(scores.node, slow.node)
    assert scores.order == slow.order
    for t in range(len(slow.node)):
        assert patterns_at(scores, t) == patterns_at(slow, t)


def named(model: Model, scores: Potentials) -> list[list[Any]]:
    """Best labels of scores, by name."""
    return [[model.labels[b] for b in labels] for labels in scores.decode()]


def n_types(model: Model) -> int:
    """Types that are kept, the boundary too."""
    assert model.words is not None
    return model.words._known._n_types


# Windows of words and of other readings, with and without padding, besides whatever is drawn.
some_sources = st.lists(
    st.one_of(
        st.sampled_from(
            [BIAS, START, END, Template(((-1, "word"), (0, "word")), pad=True), Template(((0, "word"), (2, "kind")))]
        ),
        corpora.templates,
    ),
    max_size=6,
    unique=True,
)


@given(
    some_sources, corpora.odd_sentences, corpora.odd_sentences, st.integers(1, 3), st.integers(0, 2**32 - 1)
)  # fmt: skip
def test_the_same_as_attribute_by_attribute(
    sources: list[Source], corpus: list[list[str]], others: list[list[str]], order: int, seed: int
) -> None:
    """Any templates, orders 1 to 3, texts of known and unknown words, in one call or one by one."""
    model = weighted(sources, corpus, order, seed)
    tagger = ModelTagger(model)
    for X in (corpus, others, [*corpus, *others], []):
        slow = model._fired_potentials(intern_sentences(X))
        assert_same(model.potentials(intern_sentences(X)), slow)
        assert tagger.predict(X) == named(model, slow)
        assert [tagger.predict([sentence])[0] for sentence in X] == named(model, slow)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_presets(order: int) -> None:
    """The default families, and the paper's with its windows joined with affixes and long tag patterns."""
    paper = dict.fromkeys(source for family in paper_families(2, order, 2) for source in family.sources)
    for model in (default_model(order), weighted(list(paper), TRAIN, order, 1)):
        for X in (TRAIN, NEW):
            slow = model._fired_potentials(intern_sentences(X))
            assert_same(model.potentials(intern_sentences(X)), slow)
            assert ModelTagger(model).predict(X) == named(model, slow)


def test_other_methods_use_the_same_scores() -> None:
    """Marginals and k best come from the scores that the labels come from."""
    tagger = ModelTagger(default_model(3))
    best = tagger.predict(NEW)
    assert [found[0][0] for found in tagger.predict_kbest(NEW, 2)] == best
    marginals = [m for sentence in tagger.predict_marginals(NEW) for m in sentence]
    slow = tagger.model_._fired_potentials(intern_sentences(NEW)).label_marginals()
    np.testing.assert_allclose([list(m.values()) for m in marginals], np.concatenate(slow))


# ---- what is kept ----


def test_words_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text whose words are known reads nothing."""
    tagger = ModelTagger(default_model())
    expected = tagger.predict(NEW)
    kept = n_types(tagger.model_)

    def fail(*_: Any) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(words.Text, "reading", fail)
    assert tagger.predict(NEW) == expected
    assert n_types(tagger.model_) == kept == 1 + len({word for sentence in NEW for word in sentence})
    with pytest.raises(AssertionError, match="read again"):
        tagger.predict([["unheard"]])


@pytest.mark.parametrize("bound", [("MAX_TYPES", 4), ("MAX_BYTES", 700)])
def test_few_types_are_kept(bound: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the bound, the labels are the same, even of a text that goes beyond it."""
    expected = ModelTagger(default_model()).predict(NEW)
    monkeypatch.setattr(words, *bound)
    tagger = ModelTagger(default_model())
    counts = set()
    for _ in range(2):
        for i, sentence in enumerate(NEW):
            assert tagger.predict([sentence]) == [expected[i]]
            counts.add(n_types(tagger.model_))
        assert tagger.predict(NEW) == expected
    assert max(counts) <= 4
    assert min(counts) < max(counts)


def test_longer_patterns_count_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Types with many longer patterns are forgotten earlier than their number says."""
    monkeypatch.setattr(words, "MAX_BYTES", 4000)
    model = weighted([Template(((0, "prefix:1"),))], [["a"]], 3, 5, share=1.0)
    assert model.words is not None
    n_local = len(model.potentials(intern_sentences([["a"]])).local.score)
    assert n_local > 0
    bytes_per_type = 8 * (len(LABELS) + 1)
    kept = 0
    for i in range(300):
        model.words.potentials([[f"a{i}"]])
        kept = max(kept, n_types(model))
    assert kept <= 4000 / (bytes_per_type + 16 * n_local) + 3 < 4000 / bytes_per_type - 10


def test_memory_is_bounded_over_many_words() -> None:
    """Six times as many distinct words as are kept leave no more behind than the first hundred thousand."""
    tagger = ModelTagger(weighted([Template(((i, "suffix:2"),)) for i in range(-2, 3)], TRAIN, 2, 0))
    tracemalloc.start()
    try:
        kept = []
        for i in range(8):
            tagger.predict(
                [[f"w{n}" for n in range(i * 50_000 + k, i * 50_000 + k + 50)] for k in range(0, 50_000, 50)]
            )
            kept.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert max(kept) < 1.05 * max(kept[:2]) < words.MAX_BYTES
    assert n_types(tagger.model_) <= words.MAX_TYPES


def test_threads_share_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that learn words and forget them all the time give the labels that one thread gives."""
    vocabulary = [word for sentence in TRAIN + NEW for word in sentence] + [f"{a}{b}" for a in "abc" for b in "xyz"]
    rng = np.random.default_rng(0)
    texts = [[[str(w) for w in rng.choice(vocabulary, n)] for n in (3, 0, 7)] for _ in range(600)]
    slow = default_model()
    expected = [named(slow, slow._fired_potentials(intern_sentences(X))) for X in texts]
    monkeypatch.setattr(words, "MAX_TYPES", 16)
    tagger = ModelTagger(default_model())
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(tagger.predict, texts)) == expected
    finally:
        sys.setswitchinterval(interval)


def test_pickle_and_copies_leave_the_words_behind() -> None:
    """A model that has tagged is as small as before, and tags the same."""
    model = default_model()
    before = len(pickle.dumps(model))
    expected = ModelTagger(model).predict(NEW)
    assert len(pickle.dumps(model)) == before
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert "words" not in vars(again)
        assert ModelTagger(again).predict(NEW) == expected


def test_loading_prepares_nothing(tmp_path: Path) -> None:
    """The arrays for tagging are made at the first text; a file's read-only arrays will do."""
    tagger = VCRF(recipe="paper", base_strength=0.01, n_jobs=1).fit(
        TRAIN, [[LABELS[len(word) % 3] for word in s] for s in TRAIN]
    )
    tagger.save(tmp_path / "m.vcrf")
    loaded = load(tmp_path / "m.vcrf")
    assert "words" not in vars(loaded.model_)
    assert loaded.predict(NEW) == tagger.predict(NEW)


# ---- what is refused, and what goes the general way ----


@pytest.mark.parametrize("token", [1, None, b"a", ["a"]])
def test_a_token_that_is_not_a_str_is_named(token: Any) -> None:
    """At first and when everything else is known; hashable or not. Nothing is learnt from it."""
    tagger = ModelTagger(default_model())
    for _ in range(2):
        with pytest.raises(InputError, match=r"Sentence 1, token 2: a token must be a str, got"):
            tagger.predict([["a"], ["a", "b", token]])
        tagger.predict([["a", "b"]])
    assert n_types(tagger.model_) == 3


def test_subclasses_of_str() -> None:
    """Words from a NumPy array are words; what is kept are plain ones."""
    tagger = ModelTagger(default_model())
    expected = ModelTagger(default_model()).predict(NEW)
    assert tagger.predict([np.array(sentence, dtype=str) for sentence in NEW]) == expected
    assert tagger.model_.words is not None
    assert {*map(type, tagger.model_.words._known._numbers)} == {str}


@dataclass(frozen=True)
class Shouted(Template):
    """Reads upper case."""

    def read(self, text: Any) -> Any:
        return super().read(intern_sentences([[w.upper() for w in s] for s in _sentences(text)]))


def _sentences(text: Any) -> list[list[str]]:
    flat = [text.words[i] for i in text.word_ids]
    return [flat[text.sent_ptr[i] : text.sent_ptr[i + 1]] for i in range(text.n_sentences)]


def test_sources_of_others_go_the_general_way() -> None:
    """A source that is no plain template is asked itself, for every text."""
    model = weighted([BIAS, Shouted(((0, "word"),))], TRAIN, 2, 0, share=1.0)
    assert model.words is None
    lower = ModelTagger(model).predict([["the", "cat"]])
    assert lower == ModelTagger(model).predict([["THE", "CAT"]])
    dicts = [[{"w": word} for word in sentence] for sentence in TRAIN]
    given = VCRF(recipe="paper", base_strength=0.01, n_jobs=1).fit(
        dicts, [[LABELS[len(word) % 3] for word in s] for s in TRAIN]
    )
    assert given.model_.words is None
    assert given.score(dicts, [[LABELS[len(word) % 3] for word in s] for s in TRAIN]) > 0.5


# ---- real text ----


def test_treebank(treebank: Callable[[str], Path]) -> None:
    """Real text and real weights: the labels are identical, the scores equal up to rounding."""
    corpus = read_corpus(treebank("english"), tag="upos", split="train").take(range(150))
    test = read_corpus(treebank("english"), tag="upos", split="test").tokens
    families = [*default_families(), Family("word x tags", (Template(((0, "word"),)),), 2)]
    tagger = VCRF(recipe="paper", families=families, base_strength=6e-3, tol=0.1).fit(corpus.tokens, corpus.labels)
    model = tagger.model_
    text = intern_sentences(test)
    slow, fast = model._fired_potentials(text), model.potentials(text)
    np.testing.assert_allclose(fast.node, slow.node, atol=1e-12)
    assert len(fast.local.score) == len(slow.local.score) > 1000
    assert tagger.predict(test) == named(model, slow)
