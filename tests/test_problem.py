"""The problem: feature numbers, candidates, observed pairs and screening bounds against counting by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import dict_sentences, occurrences, patterns, sentences, tokens_of, zeros
from vcrf.errors import BudgetError, InputError
from vcrf.families import (
    BIAS,
    Family,
    NamedFeature,
    Template,
    default_families,
    explicit_families,
    intern_sentences,
    paper_families,
    read_attributes,
)
from vcrf.problem import Problem, build_problem

WORD = Template(((0, "word"),))


@dataclass
class Case:
    """A problem and what it was built from."""

    corpus: list[list[Any]]
    labels: list[int]
    families: list[Family]
    weights: list[float]
    problem: Problem


@st.composite
def cases(draw, candidates="all", merge_twins=True):
    """Problems of few sentences: the paper's families, the default ones, or given attributes."""
    corpus = draw(st.one_of(sentences, dict_sentences))
    is_given = any(isinstance(token, dict) for sentence in corpus for token in sentence)
    text = read_attributes(corpus) if is_given else intern_sentences(corpus)
    tags = draw(st.integers(1, 3))
    if is_given:
        families = explicit_families(text, tags)
    elif draw(st.booleans()):
        families = paper_families(draw(st.integers(0, 2)), tags, draw(st.integers(0, 2)))
    else:
        families = default_families(tags=tags)
    n_labels = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = rng.integers(0, n_labels, text.n_tokens).astype(np.uint32)
    weights = rng.integers(0, 4, len(corpus)) / 8.0 if draw(st.booleans()) else None
    problem = build_problem(
        text, labels, n_labels, families, weights=weights, candidates=candidates, merge_twins=merge_twins
    )
    every = [1.0 / len(corpus)] * len(corpus) if weights is None else weights.tolist()
    return Case(corpus, labels.tolist(), families, every, problem)


def column(problem, c):
    """Return {position: value} of a column."""
    part = slice(problem.columns.ptr[c], problem.columns.ptr[c + 1])
    positions = problem.columns.positions[part].tolist()
    values = problem.columns.values[part].tolist() if len(problem.columns.values) else [1.0] * len(positions)
    return dict(zip(positions, values, strict=True))


def orders_of(problem, c):
    """Return the pattern lengths that the column's sources have a family for."""
    members = [problem.sources[s] for s in problem.columns.class_sources[problem.columns.classes[c]]]
    return {family.tags for family in problem.families for source in family.sources if source in members}


def code_of(pattern, n_labels):
    """Return the base-L number of a pattern, the oldest label most significant."""
    return sum(label * n_labels**power for power, label in enumerate(reversed(pattern)))


# ---- feature numbers ----


@given(cases(), st.data())
def test_split_and_join_are_inverse(case, data):
    """Every number below columns x stride is one (column, length, code), and back."""
    problem = case.problem
    stride = sum(problem.n_labels**k for k in range(1, problem.order + 1))
    assert problem.space.stride == stride
    n = max(len(problem.columns), 1) * stride
    features = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=20))), np.int64)
    columns, lengths, codes = problem.split_features(features)
    assert np.all((lengths >= 1) & (lengths <= problem.order))
    assert np.all(codes < problem.n_labels ** lengths.astype(np.int64))
    for k in range(1, problem.order + 1):
        at = lengths == k
        np.testing.assert_array_equal(problem.join_features(columns[at], k, codes[at]), features[at])


def test_feature_numbers_are_grouped_by_column_then_length():
    """Column * stride + offset of the length + code, written out for two labels and order 3."""
    problem = build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2, paper_families(0, 3, 0))
    assert problem.space.offsets.tolist() == [0, 0, 2, 6, 14]
    columns, lengths, codes = problem.split_features(np.arange(28))
    assert columns.tolist() == [0] * 14 + [1] * 14
    assert lengths.tolist() == ([1] * 2 + [2] * 4 + [3] * 8) * 2
    assert codes.tolist() == [*range(2), *range(4), *range(8)] * 2


def test_feature_numbers_do_not_overflow():
    """A million columns with the largest allowed stride stay exact."""
    problem = build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 360, paper_families(0, 3, 0))
    column = np.array([4_000_000], np.uint32)
    code = np.array([360**3 - 1], np.uint32)
    feature = problem.join_features(column, 3, code)
    assert feature.tolist() == [4_000_000 * (360 + 360**2 + 360**3) + 360 + 360**2 + 360**3 - 1]
    assert [int(part[0]) for part in problem.split_features(feature)] == [4_000_000, 3, 360**3 - 1]


# ---- candidates ----


@given(cases())
def test_candidates_are_all_attributes_times_all_patterns(case):
    """Counted before twins are merged: attributes of each family x labels to the power of its tags."""
    expected = sum(
        len(occurrences(source, case.corpus)) * case.problem.n_labels**family.tags
        for family in case.families
        for source in family.sources
    )
    assert case.problem.n_candidates == expected


@given(cases(candidates="observed"))
def test_observed_candidates_are_the_pairs_seen_in_training(case):
    """An attribute and the true pattern that ends there, once each; twins count apart, and value 0 is seen."""
    seen = set()
    for i, family in enumerate(case.families):
        here = patterns(case.labels, case.corpus, family.tags)
        for j, source in enumerate(family.sources):
            nothing = zeros(source, case.corpus) if family.tags == 1 else {}
            for attribute, where in occurrences(source, case.corpus).items():
                seen |= {(i, j, attribute, here[t]) for t in [*where, *nothing.get(attribute, ())] if t in here}
    assert case.problem.n_candidates == len(seen)


@pytest.mark.parametrize("candidates", [("all", "observed"), ("observed", "all")])
def test_single_labels_and_longer_patterns_are_restricted_apart(candidates):
    """A pair says "all" or "observed" for single labels first, then for longer patterns."""
    families = paper_families(1, 3, 0)
    y = np.array([0, 1, 0, 0, 1, 1], np.uint32)

    def count(choice, lengths):
        """Candidates of some pattern lengths only."""
        chosen = [family for family in families if family.tags in lengths]
        text = intern_sentences([["a", "b", "a", "c"], ["a", "b"]])
        return build_problem(text, y, 2, chosen, candidates=choice).n_candidates

    both = count(candidates, (1, 2, 3))
    assert both == count(candidates[0], (1,)) + count(candidates[1], (2, 3))
    assert len({both, count("all", (1, 2, 3)), count("observed", (1, 2, 3))}) == 3


@given(cases(merge_twins=False))
def test_merging_twins_does_not_change_the_count(case):
    """Candidates are counted before any reduction, merged or not."""
    again = build_problem(case.problem.text, case.problem.y, case.problem.n_labels, case.families, merge_twins=True)
    assert case.problem.n_candidates == again.n_candidates
    assert len(again.columns) <= len(case.problem.columns) == case.problem.columns.n_attributes.sum()


@given(cases(), st.integers(1, 3))
def test_observed_codes_are_the_columns_true_patterns(case, k):
    """Sorted, distinct column * L**k + code, only for columns with such a family and only where s >= k."""
    problem = case.problem
    if k > problem.order:
        return
    here = patterns(case.labels, case.corpus, k)
    expected = {
        c * problem.n_labels**k + code_of(here[t], problem.n_labels)
        for c in range(len(problem.columns))
        if k in orders_of(problem, c)
        for t in column(problem, c)
        if t in here
    }
    if k == 1:
        # Attributes of value 0 count as seen with their label.
        expected |= {
            int(c) * problem.n_labels + int(problem.y[t])
            for c, t in zip(*problem.columns.zeros, strict=True)
            if 1 in orders_of(problem, int(c))
        }
    assert problem.observed(k).tolist() == sorted(expected)


@given(cases())
def test_has_order_says_which_patterns_a_column_can_have(case):
    """A column has patterns of length k iff one of its members is in a family of k tags."""
    for k in range(1, case.problem.order + 1):
        expected = [k in orders_of(case.problem, c) for c in range(len(case.problem.columns))]
        assert case.problem.has_order(k).tolist() == expected


# ---- weights and bounds ----


@given(cases())
def test_column_mass_weighs_the_tokens_by_their_sentence(case):
    """Sum of sentence weight x |value|: no gradient of the column's features is larger."""
    problem = case.problem
    weight = [w for w, sentence in zip(case.weights, case.corpus, strict=True) for _ in sentence]
    expected = [
        sum(weight[t] * abs(value) for t, value in column(problem, c).items()) for c in range(len(problem.columns))
    ]
    np.testing.assert_allclose(problem.column_mass, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(problem.token_weights, weight)


@given(cases(), st.integers(1, 4))
def test_deep_weights_drop_tokens_with_too_little_history(case, k):
    """Patterns of length k end at the k-th token of a sentence at the earliest."""
    index = [i for _, _, i in tokens_of(case.corpus)]
    expected = [w if i >= k - 1 else 0.0 for i, w in zip(index, case.problem.token_weights, strict=True)]
    assert case.problem.deep_weights(k).tolist() == expected


@given(cases())
def test_bias_column_occurs_everywhere_with_value_one(case):
    """Some column is everywhere 1 iff there is a bias column."""
    problem = case.problem
    everywhere = dict.fromkeys(range(problem.n_tokens), 1.0)
    found = [c for c in range(len(problem.columns)) if column(problem, c) == everywhere]
    assert (problem.bias_column in found) if found else (problem.bias_column == -1)


def test_a_number_everywhere_is_no_bias():
    """A numeric feature of every token is not the bias unless it is always 1."""
    text = read_attributes([[{"n": 2.0}, {"n": 1.0}]])
    families = [Family("n", (NamedFeature("n"),))]
    assert build_problem(text, np.zeros(2, np.uint32), 2, families).bias_column == -1
    with_bias = build_problem(text, np.zeros(2, np.uint32), 2, [*families, Family("bias", (BIAS,))])
    assert with_bias.bias_column == 1


# ---- families ----


def test_sources_are_shared_between_families_of_several_orders():
    """A source is read once; the table says which family has it with patterns of each length."""
    families = [Family("one", (WORD, BIAS), 1), Family("three", (BIAS,), 3), Family("two", (WORD,), 2)]
    problem = build_problem(intern_sentences([["a", "b"]]), np.zeros(2, np.uint32), 2, families)
    assert problem.sources == [WORD, BIAS]
    assert problem.family_of.tolist() == [[-1, 0, 2, -1], [-1, 0, -1, 1]]
    assert problem.order == 3


def test_a_feature_in_two_families_is_an_error():
    """A feature has one complexity."""
    families = [Family("words", (WORD,)), Family("again", (BIAS, WORD))]
    with pytest.raises(InputError, match=r"'words' and 'again' both have 'word' with tag patterns of length 1"):
        build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2, families)


@pytest.mark.parametrize("tags", [0, -1])
def test_a_family_needs_tags(tags):
    """A pattern has at least one label."""
    with pytest.raises(InputError, match=f"'empty' needs tags >= 1, got {tags}"):
        build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2, [Family("empty", (WORD,), tags)])


def test_no_families_is_an_error():
    """There is nothing to learn without features."""
    with pytest.raises(InputError, match="at least one family"):
        build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2, [])


@pytest.mark.parametrize("candidates", ["some", ("all", "some"), ("all",), ("all", "all", "all")])
def test_unknown_candidates_are_an_error(candidates):
    """The message says what is known."""
    families = [Family("w", (WORD,))]
    with pytest.raises(InputError, match=r"'all' or 'observed' \(or a pair of these\), got "):
        build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2, families, candidates=candidates)


def test_too_many_patterns_are_refused_before_anything_is_read():
    """2000 labels at order 3 have 8 * 10**9 patterns, more than 32 bits count; the message names the knob."""
    message = r"8,000,000,000 tag patterns of length 3 over 2000 labels; the budget is 4,294,967,296\. Lower `tags`"
    with pytest.raises(BudgetError, match=message):
        build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2000, default_families(tags=3))
    build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), 2000, default_families(tags=2))


@pytest.mark.parametrize(("n_labels", "order"), [(50, 5), (84, 5), (256, 4), (1000, 3)])
def test_features_of_many_labels_have_numbers(n_labels, order):
    """The largest code of the longest pattern, in a high column, comes back from its number."""
    problem = build_problem(intern_sentences([["a"]]), np.zeros(1, np.uint32), n_labels, default_families(tags=order))
    column, code = np.array([0, 2_000_000], np.uint32), np.full(2, n_labels**order - 1, np.uint32)
    numbers = problem.join_features(column, order, code)
    found = problem.split_features(numbers)
    assert found[0].tolist() == [0, 2_000_000]
    assert found[1].tolist() == [order, order]
    assert found[2].tolist() == code.tolist()


def test_default_weights_are_the_mean_over_sentences():
    """1/m each, empty sentences counted; no sentences, no weights."""
    families = [Family("w", (WORD,))]
    problem = build_problem(intern_sentences([["a"], [], ["b", "a"], ["c"]]), np.zeros(4, np.uint32), 2, families)
    assert problem.weights.tolist() == [0.25] * 4
    empty = build_problem(intern_sentences([]), np.zeros(0, np.uint32), 2, families)
    assert len(empty.weights) == empty.n_candidates == len(empty.column_mass) == 0
