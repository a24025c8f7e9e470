"""Columns against grouping by hand: twins, classes, positions, values."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given

from corpora import dict_sentences, merged_columns, occurrences, sentences, template_lists
from vcrf.families import BIAS, NamedFeature, Template, intern_sentences, paper_families, read_attributes
from vcrf.families.columns import intern, read_columns

NAMED = [NamedFeature(name) for name in ("a", "b", "t", "s", "n", "v")]


def columns_read(columns):
    """Return (occurrences, sources) of every column, checking the layout of the arrays."""
    assert columns.ptr[0] == 0
    assert columns.ptr[-1] == len(columns.positions)
    assert len(columns.values) in (0, len(columns.positions))
    found = []
    for c in range(len(columns)):
        part = slice(columns.ptr[c], columns.ptr[c + 1])
        positions = columns.positions[part].tolist()
        assert positions == sorted(set(positions)) != []
        assert columns.first_positions[c] == positions[0]
        values = columns.values[part].tolist() if len(columns.values) else [1.0] * len(positions)
        where = frozenset(zip(positions, values, strict=True))
        found.append((where, columns.class_sources[columns.classes[c]]))
    return found


def attribute_counts(sources, corpus):
    """Count the attributes of each source."""
    return [len(occurrences(source, corpus)) for source in sources]


@given(sentences, template_lists)
def test_templates_columns_are_the_distinct_sets_of_positions(corpus, sources):
    """Attributes of several templates are one column iff they occur at the same positions."""
    columns = read_columns(intern_sentences(corpus), sources)
    assert Counter(columns_read(columns)) == merged_columns(sources, corpus)
    assert columns.n_attributes.tolist() == attribute_counts(sources, corpus)
    assert not columns.listed


@given(dict_sentences)
def test_named_columns_are_the_distinct_sets_of_positions_and_values(corpus):
    """With several attributes a position, twins of one source stay apart; values count for being twins."""
    columns = read_columns(read_attributes(corpus), NAMED)
    assert Counter(columns_read(columns)) == merged_columns(NAMED, corpus)
    assert columns.n_attributes.tolist() == attribute_counts(NAMED, corpus)


@given(dict_sentences)
def test_classes_have_each_source_once_and_are_all_used(corpus):
    """A class is a set of sources in increasing order; no two are equal, none has no column."""
    columns = read_columns(read_attributes(corpus), NAMED)
    assert all(sources == tuple(sorted(set(sources))) != () for sources in columns.class_sources)
    assert len(set(columns.class_sources)) == len(columns.class_sources)
    assert sorted(set(columns.classes.tolist())) == list(range(len(columns.class_sources)))


@given(dict_sentences)
def test_listed_attributes_lead_to_their_columns(corpus):
    """Sources with several attributes a position say which column each of them is."""
    text = read_attributes(corpus)
    columns = read_columns(text, NAMED)
    found = columns_read(columns)
    key_of = dict(zip(text.names, text.keys().tolist(), strict=True))
    assert set(columns.listed) == {i for i, source in enumerate(NAMED) if not source.read(text).is_single}
    for i, (which, keys) in columns.listed.items():
        expected = {key_of[name]: frozenset(at.items()) for name, at in occurrences(NAMED[i], corpus).items()}
        assert {key: found[c][0] for c, key in zip(which, keys.tolist(), strict=True)} == expected
        assert len(set(which.tolist())) == len(which)
        assert all(i in found[c][1] for c in which)


@given(sentences, template_lists)
def test_without_merging_every_attribute_is_a_column(corpus, sources):
    """`merge=False` gives one column an attribute, each of one source."""
    columns = read_columns(intern_sentences(corpus), sources, merge=False)
    expected = Counter(
        (frozenset(where.items()), (i,))
        for i, source in enumerate(sources)
        for where in occurrences(source, corpus).values()
    )
    assert Counter(columns_read(columns)) == expected
    assert columns.n_attributes.tolist() == attribute_counts(sources, corpus)


@given(dict_sentences)
def test_without_merging_values_and_several_attributes_are_kept(corpus):
    """`merge=False` on given attributes with numbers and sets."""
    columns = read_columns(read_attributes(corpus), NAMED, merge=False)
    expected = Counter(
        (frozenset(where.items()), (i,))
        for i, source in enumerate(NAMED)
        for where in occurrences(source, corpus).values()
    )
    assert Counter(columns_read(columns)) == expected


@given(dict_sentences)
def test_mass_is_the_sum_of_absolute_values(corpus):
    """The static screening bound of a column, times m."""
    columns = read_columns(read_attributes(corpus), NAMED)
    expected = [sum(abs(value) for _, value in where) for where, _ in columns_read(columns)]
    np.testing.assert_allclose(columns.mass(), expected, rtol=1e-12)


def test_a_class_forms_as_sources_join():
    """word, its suffix and its neighbour are one column where they always go together."""
    sources = [Template(((0, "word"),)), Template(((0, "suffix:1"),)), Template(((1, "word"),))]
    columns = read_columns(intern_sentences([["a", "b"], ["a", "b"], ["cb"]]), sources)
    assert Counter(columns_read(columns)) == {
        (frozenset({(0, 1.0), (2, 1.0)}), (0, 1, 2)): 1,
        (frozenset({(1, 1.0), (3, 1.0)}), (0,)): 1,
        (frozenset({(1, 1.0), (3, 1.0), (4, 1.0)}), (1,)): 1,
        (frozenset({(4, 1.0)}), (0,)): 1,
    }


def test_numbers_at_the_same_positions_are_twins_only_if_equal():
    """Columns differ if one value differs, also in sign."""
    text = read_attributes([[{"a": 2.0, "b": 2.0, "c": -2.0, "d": 2.0}, {"a": 0.5, "b": 0.5, "c": 0.5, "d": 1.5}]])
    columns = read_columns(text, [NamedFeature(name) for name in "abcd"])
    assert sorted(columns.class_sources) == [(0, 1), (2,), (3,)]


def test_an_indicator_and_a_number_that_is_always_one_are_twins():
    """Twins are equal sets of (position, value), whatever else their sources hold."""
    columns = read_columns(
        read_attributes([[{"a": "x", "b": 1.0}, {"b": {"y": 2.0}}]]), [NamedFeature("a"), NamedFeature("b")]
    )
    assert Counter(sources for _, sources in columns_read(columns)) == {(0, 1): 1, (1,): 1}


def test_tables_grow_with_the_columns():
    """Thousands of columns outgrow the first tables; nothing is lost or merged wrongly."""
    rng = np.random.default_rng(0)
    corpus = [[f"{a}{b}" for a, b in rng.integers(0, 90, size=(5, 2))] for _ in range(1500)]
    sources = [*paper_families(2, 1, 1)[-1].sources, Template(((0, "word"),)), BIAS]
    columns = read_columns(intern_sentences(corpus), sources)
    assert len(columns) > 2 * 4096
    assert Counter(columns_read(columns)) == merged_columns(sources, corpus)


def test_no_sources_no_tokens_no_columns():
    """Empty inputs give an empty table."""
    for sources, corpus in ([], [["a"]]), ([BIAS], [[]]), ([BIAS], []), ([NamedFeature("w")], [[]]):
        text = read_attributes(corpus) if corpus == [[]] else intern_sentences(corpus)
        columns = read_columns(text, sources)
        assert len(columns) == len(columns.classes) == len(columns.class_sources) == len(columns.mass()) == 0
        assert columns.n_attributes.tolist() == [0] * len(sources)


@given(sentences)
def test_interning_numbers_keys_in_order_of_first_occurrence(corpus):
    """Equal keys, equal numbers, counted from 0."""
    keys = Template(((0, "word"),)).keys(intern_sentences(corpus))
    ids, n = intern(keys)
    first = list(dict.fromkeys(keys.tolist()))
    assert ids.tolist() == [first.index(key) for key in keys.tolist()]
    assert n == len(first)
