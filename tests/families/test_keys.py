"""Key groups: scoring once a key must reach exactly the positions of each column."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpora import dict_sentences, sentences, template_lists
from vcrf.families import BIAS, NamedFeature, Template, default_families, intern_sentences, read_attributes
from vcrf.families.columns import read_columns
from vcrf.families.keys import group_columns, partitions, take_rows

NAMED = [NamedFeature(name) for name in ("a", "b", "t", "s", "n", "v")]
seeds = st.integers(0, 2**32 - 1)


def check_groups(text, sources, seed, found=None):
    """Expand column -> keys -> positions of every group and compare with the column; return the groups."""
    columns = read_columns(text, sources)
    keep = np.random.default_rng(seed).random(len(columns)) < 0.8
    found = partitions(text, sources) if found is None else found
    groups = group_columns(columns, keep, found, text.n_tokens)
    grouped = [int(c) for group in groups for c in group.columns]
    assert sorted(grouped) == np.flatnonzero(keep).tolist()
    for group in groups:
        check_rows(group)
        for i, c in enumerate(group.columns):
            keys = group.col_keys[group.col_ptr[i] : group.col_ptr[i + 1]]
            assert np.all(keys > 0)
            assert len(np.unique(keys)) == len(keys)
            values = group.col_values[group.col_ptr[i] : group.col_ptr[i + 1]]
            reached = {
                int(t): float(values[j]) if len(values) else 1.0
                for j, key in enumerate(keys)
                for t in group.key_positions[group.key_ptr[key] : group.key_ptr[key + 1]]
            }
            assert reached == column(columns, c)
    return columns, groups


def check_rows(group):
    """`key_ptr` and `key_positions` list the positions of each key, and key 0 has none."""
    assert group.key_ptr[0] == group.key_ptr[1] == 0
    assert group.key_ptr[-1] == len(group.key_positions)
    assert len(group.col_values) in (0, len(group.col_keys))
    for key in range(1, group.n_keys):
        positions = group.key_positions[group.key_ptr[key] : group.key_ptr[key + 1]].tolist()
        assert positions == np.flatnonzero(group.pos_key == key).tolist() != []
    assert int(group.pos_key.max()) == group.n_keys - 1


def column(columns, c):
    """Return {position: value} of a column."""
    part = slice(columns.ptr[c], columns.ptr[c + 1])
    values = columns.values[part] if len(columns.values) else np.ones(part.stop - part.start)
    return dict(zip(columns.positions[part].tolist(), values.tolist(), strict=True))


@given(sentences, template_lists, seeds)
def test_groups_of_templates_reach_the_columns_positions(corpus, sources, seed):
    """Every kept column is in one group, and its keys cover its positions, no more and no less."""
    check_groups(intern_sentences(corpus), sources, seed)


@given(dict_sentences, seeds)
def test_groups_of_given_attributes_reach_the_columns_positions(corpus, seed):
    """Columns with numbers keep their values and are scored at single positions."""
    columns, groups = check_groups(read_attributes(corpus), NAMED, seed)
    for group in groups:
        for i, c in enumerate(group.columns):
            if any(value != 1.0 for value in column(columns, c).values()):
                keys = group.col_keys[group.col_ptr[i] : group.col_ptr[i + 1]]
                assert np.all(np.diff(group.key_ptr)[keys] == 1)
                assert len(group.col_values) > 0


@given(sentences, seeds, st.integers(1, 4), st.integers(1, 5))
def test_any_partitions_will_do(corpus, seed, n_partitions, n_classes):
    """Grouping is exact for arbitrary partitions, and the first that represents a column has it."""
    text = intern_sentences(corpus)
    rng = np.random.default_rng(seed)
    sources = [s for f in default_families() for s in f.sources]
    found = [rng.integers(0, n_classes, text.n_tokens).astype(np.uint32) for _ in range(n_partitions)]
    columns, groups = check_groups(text, sources, seed, found)
    for group in groups:
        assert len(group.pos_key) == text.n_tokens
    place = {int(c): group for group in groups for c in group.columns}
    for c, group in place.items():
        where = set(column(columns, c))
        fits = [ids for ids in found if all(len({t in where for t in np.flatnonzero(ids == k)}) < 2 for k in ids)]
        if fits:
            keys = [group.pos_key[t] for t in sorted(where)]
            assert len(set(keys)) == len({fits[0][t] for t in where})
        else:
            assert np.all(np.diff(group.key_ptr) <= 1)


@given(st.one_of(sentences.map(intern_sentences), dict_sentences.map(read_attributes)), template_lists)
def test_partitions_are_coarsest_first_and_not_too_fine(text, sources):
    """Classes are numbered from 0; none is nearly as fine as single positions."""
    named = NAMED if hasattr(text, "names") else []
    sizes = []
    for ids in partitions(text, [*sources, *named]):
        assert ids.shape == (text.n_tokens,)
        assert sorted(set(ids.tolist())) == list(range(len(set(ids.tolist()))))
        sizes.append(len(set(ids.tolist())))
    assert sizes == sorted(sizes)
    assert all(size <= 0.7 * text.n_tokens for size in sizes)


def test_word_attributes_are_scored_once_a_word_type():
    """Word, affixes and shape of a repeated word share the keys of the word; neighbours have their own."""
    text = intern_sentences([["the", "cat", "the", "dog"] * 5, ["the", "cat"] * 6])
    sources = [Template(((0, reading),)) for reading in ("word", "suffix:2", "shape")]
    columns = read_columns(text, sources)
    (group,) = group_columns(columns, np.ones(len(columns), bool), partitions(text, sources), text.n_tokens)
    assert group.n_keys == 1 + 3
    assert group.key_ptr.tolist()[-1] == text.n_tokens


def test_a_function_of_a_finer_partition_is_left_out():
    """The bias needs no partition of its own beside the words."""
    text = intern_sentences([["a", "b"] * 10])
    assert len(partitions(text, [BIAS, Template(((0, "word"),))])) == 1
    assert len(partitions(text, [BIAS])) == 1


def test_a_named_feature_is_its_own_partition():
    """Positions without the feature are one class; numbers and several attributes a position give none."""
    corpus = [[{"a": "x"}, {}, {"a": "y", "b": 1}, {}, {"a": "x"}, {"s": {"p", "q"}, "n": 2.0}, {"a": "y"}]]
    text = read_attributes(corpus)
    (ids,) = partitions(text, [NamedFeature("a"), NamedFeature("s"), NamedFeature("n")])
    assert ids.tolist() == [0, 1, 2, 1, 0, 1, 2]
    assert partitions(text, [NamedFeature("s"), NamedFeature("n")]) == []


def test_single_positions_cover_all_tokens_without_any_partition():
    """`pos_key` has an entry for every token, also for a last token that no column covers."""
    text = intern_sentences([["a", "b", "c"]])
    sources = [Template(((1, "word"),))]
    columns = read_columns(text, sources)
    (group,) = group_columns(columns, np.ones(len(columns), bool), partitions(text, sources), text.n_tokens)
    assert len(group.pos_key) == text.n_tokens


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=5), st.data(), st.booleans())
def test_take_rows_takes_rows(rows, data, has_values):
    """Rows of a CSR list in any order, with repeats, with and without values."""
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    flat = np.array([item for row in rows for item in row], np.uint32)
    values = flat / 2.0 if has_values else np.zeros(0)
    chosen = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1))), np.int64)
    out_ptr, ids, out_values = take_rows(ptr, flat, values, chosen)
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(out_ptr)] == [rows[i] for i in chosen]
    if has_values:
        np.testing.assert_array_equal(out_values, ids / 2.0)
    else:
        assert len(out_values) == 0
