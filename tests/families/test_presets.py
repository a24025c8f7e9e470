"""The paper's families H(k1, k2, k3) against its definition, and the sets that taggers use."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import sentences, tokens_of
from vcrf.families import (
    BIAS,
    Family,
    default_families,
    intern_sentences,
    paper_complexities,
    paper_families,
    transition_families,
)
from vcrf.families.presets import affixes, windows
from vcrf.problem import build_problem

sizes = st.integers(0, 3)


def paper_attribute(sentence, s, k1, t, k3, u):
    """Read 1[x_{s-t+1}^{s+r} = x'] 1[suff(x_s, u) = S] 1[pref(x_s, v) = P] off a sentence, s counted from 1.

    r = k1 - t, v = k3 - u. None where the window leaves the sentence or the word is too short.
    """
    r, v, word = k1 - t, k3 - u, sentence[s - 1]
    window = range(s - t + 1, s + r + 1)
    if any(not 1 <= at <= len(sentence) for at in window) or max(u, v) > len(word):
        return None
    return tuple(sentence[at - 1] for at in window), word[len(word) - u :], word[:v]


def paper_readings(corpus, k1, k3):
    """All splits of k1 and k3; for each the attribute at every position."""
    return [
        [paper_attribute(sentence, index + 1, k1, t, k3, u) for _, sentence, index in tokens_of(corpus)]
        for t in range(k1 + 1)
        for u in range(k3 + 1)
    ]


def family_of(k1, k2, k3):
    """Find H(k1, k2, k3) in the preset by its name."""
    found = [f for f in paper_families(k1, max(k2, 1), k3) if f.name == f"H({k1},{k2},{k3})"]
    assert len(found) == 1
    return found[0]


def first_equal(row):
    """Replace each entry by the index of the first equal one; None stays."""
    return tuple(None if item is None else row.index(item) for item in row)


@given(sentences, sizes, sizes)
def test_sources_of_the_paper_family_are_the_papers_indicators(corpus, k1, k3):
    """Each split of (k1, k3) is one source, which fires and distinguishes exactly as the definition says."""
    text = intern_sentences(corpus)
    family = family_of(k1, 1, k3)
    rows = [source.keys(text).tolist() for source in family.sources]
    got = Counter(first_equal([key or None for key in row]) for row in rows)
    assert got == Counter(map(first_equal, paper_readings(corpus, k1, k3)))


@given(sentences, sizes, sizes)
def test_descriptions_name_the_papers_words_and_affixes(corpus, k1, k3):
    """What people are shown at a position is the content of the definition's indicators there."""
    text = intern_sentences(corpus)
    family = family_of(k1, 1, k3)
    keys = [source.keys(text) for source in family.sources]
    for position, sentence, index in tokens_of(corpus):
        expected = Counter()
        for t in range(k1 + 1):
            for u in range(k3 + 1):
                attribute = paper_attribute(sentence, index + 1, k1, t, k3, u)
                if attribute is not None:
                    expected[described(attribute, t, u, k3 - u)] += 1
        shown = Counter(
            source.describe(text, position) for source, key in zip(family.sources, keys, strict=True) if key[position]
        )
        assert shown == expected


def described(attribute, t, u, v):
    """Write an attribute of the definition the way `describe` does."""
    window, suffix, prefix = attribute
    offsets = range(1 - t, 1 - t + len(window))
    shown = [f"word[{d:+d}]={w}" if d else f"word={w}" for d, w in zip(offsets, window, strict=True)]
    shown += [f"suffix:{u}={suffix}"] if u else []
    shown += [f"prefix:{v}={prefix}"] if v else []
    return " ".join(shown) or "bias"


@given(sizes, st.integers(1, 3), sizes)
def test_preset_has_every_family_once_with_all_its_splits(words, tags, affix):
    """0 <= k1 <= words, 1 <= k2 <= tags, 0 <= k3 <= affix; (k1 + 1)(k3 + 1) distinct sources each."""
    families = paper_families(words, tags, affix)
    names = {
        f"H({k1},{k2},{k3})": (k1, k2, k3)
        for k1 in range(words + 1)
        for k2 in range(1, tags + 1)
        for k3 in range(affix + 1)
    }
    assert len(families) == len(names)
    assert {family.name for family in families} == set(names)
    for family in families:
        k1, k2, k3 = names[family.name]
        assert len(set(family.sources)) == len(family.sources) == (k1 + 1) * (k3 + 1)
        assert family.tags == k2


def test_window_and_suffix_fire_together():
    """'ran quickly home' with suffix 'ly' at the fourth word is in H(3,2,2): a window around the position."""
    text = intern_sentences([["A", "fox", "ran", "quickly", "home"]])
    shown = [source.describe(text, 3) for source in family_of(3, 2, 2).sources if source.keys(text)[3]]
    assert "word[-1]=ran word=quickly word[+1]=home suffix:2=ly" in shown


@pytest.mark.parametrize(
    ("k1", "offsets"),
    [
        (0, [()]),
        (1, [(0,), (1,)]),
        (2, [(-1, 0), (0, 1), (1, 2)]),
        (3, [(-2, -1, 0), (-1, 0, 1), (0, 1, 2), (1, 2, 3)]),
    ],
)
def test_windows_touch_the_position_or_the_next_one(k1, offsets):
    """The window of t = 0 starts after the position; none lies wholly before it."""
    assert sorted(tuple(offset for offset, _ in window) for window in windows(k1)) == offsets


def test_affixes_split_into_suffix_and_prefix():
    """All t + r = k3, and no empty affix is read."""
    assert {frozenset(pair) for pair in affixes(2)} == {
        frozenset({(0, "suffix:2")}),
        frozenset({(0, "suffix:1"), (0, "prefix:1")}),
        frozenset({(0, "prefix:2")}),
    }
    assert affixes(0) == [()]


# ---- complexities ----


@given(sentences, sizes, st.integers(1, 3), sizes, st.integers(1, 4))
def test_paper_complexities_follow_the_papers_formula(corpus, k1, k2, k3, n_labels):
    """sqrt(2 (k1 log|V| + k2 log|labels| + k3 log|Sigma|) / m) with m the number of sentences."""
    text = intern_sentences(corpus)
    vocabulary = {word for sentence in corpus for word in sentence} or {""}
    alphabet = set("".join(vocabulary)) or {""}
    log_size = k1 * np.log(len(vocabulary)) + k2 * np.log(n_labels) + k3 * np.log(len(alphabet))
    family = family_of(k1, k2, k3)
    np.testing.assert_allclose(family.log_cardinality(text, n_labels), log_size, rtol=1e-12)
    (got,) = paper_complexities([family], text, n_labels)
    np.testing.assert_allclose(got, np.sqrt(2 * log_size / len(corpus)), rtol=1e-12)


def test_complexities_keep_the_order_of_the_families():
    """One number a family, growing with words, tags and affix characters."""
    families = paper_families(1, 2, 1)
    text = intern_sentences([["ab", "ba"], ["b"]])
    got = dict(zip((f.name for f in families), paper_complexities(families, text, 3), strict=True))
    assert got["H(0,1,0)"] < got["H(0,1,1)"] < got["H(1,1,1)"] < got["H(1,2,1)"]


def test_an_empty_family_counts_its_tag_patterns_only():
    """A family without sources has a complexity all the same."""
    text = intern_sentences([["a"]])
    np.testing.assert_allclose(Family("none", (), 2).log_cardinality(text, 3), 2 * np.log(3))


# ---- the sets that taggers use ----


@given(st.integers(1, 4))
def test_transition_families_have_plain_and_boundary_patterns(tags):
    """Plain patterns of each length above 1, boundary patterns of each length below `tags` (at least 1)."""
    got = {family.name: family.tags for family in transition_families(tags)}
    expected = {f"tags:{k}": k for k in range(2, tags + 1)}
    assert got == expected | {f"ends:{k}": k for k in range(1, max(tags, 2))}


@given(sentences, st.integers(0, 3), st.integers(1, 3), st.integers(0, 4))
def test_limits_of_the_default_families_are_respected(corpus, words, tags, affix):
    """Neighbours, tag patterns and affixes reach as far as asked; no feature is in two families."""
    families = default_families(words, tags, affix)
    offsets = [abs(offset) for f in families for s in f.sources for offset, r in s.parts if r != "boundary"]
    lengths = [int(r.split(":")[1]) for f in families for s in f.sources for _, r in s.parts if r.partition(":")[1]]
    assert max(offsets) == words
    assert max(f.tags for f in families) == tags
    assert max(lengths, default=0) == affix
    text = intern_sentences(corpus)
    problem = build_problem(text, np.zeros(text.n_tokens, np.uint32), 2, families)
    assert BIAS in problem.sources


def test_default_limits_are_two_words_two_tags_eight_characters():
    """None means the preset's own limit."""
    assert default_families() == default_families(2, 2, 8)


def test_default_families_have_distinct_names():
    """Names tell families apart in tables and model files, also at order 3."""
    names = [family.name for family in default_families(tags=3)]
    assert len(set(names)) == len(names)
