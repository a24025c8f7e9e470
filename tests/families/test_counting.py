"""Columns counted block by block are those of one machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from block_corpora import Cut, block_of, counted, cuts, family_lists
from vcrf.errors import BudgetError
from vcrf.families import Template, default_families, intern_sentences
from vcrf.families.columns import read_columns
from vcrf.families.counting import MOST_TOKENS, attributes_of, look_up, merge


@given(cuts(), family_lists())
def test_columns_have_the_numbers_counts_and_members_of_one_machine(cut: Cut, families) -> None:
    """Twins are merged across blocks; the order is by source and first position."""
    sources = list(dict.fromkeys(source for family in families for source in family.sources))
    one = read_columns(intern_sentences(cut.sentences), sources)
    _, found = counted(cut, families)
    table = found.problem.columns
    assert np.array_equal(table.ptr, one.ptr)
    assert np.array_equal(table.first_positions, one.first_positions)
    assert np.array_equal(table.n_attributes, one.n_attributes)
    assert [table.class_sources[c] for c in table.classes] == [one.class_sources[c] for c in one.classes]
    assert table.class_counts.sum() == len(one)


@given(cuts(), st.integers(1, 4))
def test_rare_columns_are_left_out_and_counted(cut: Cut, least: int) -> None:
    """By their count in all blocks, not in one."""
    families = default_families()
    sources = list(dict.fromkeys(source for family in families for source in family.sources))
    one = read_columns(intern_sentences(cut.sentences), sources)
    _, found = counted(cut, families, least / len(cut.sentences))
    counts = np.diff(one.ptr)
    assert np.array_equal(np.diff(found.problem.columns.ptr), counts[counts >= least])
    assert found.problem.columns.class_counts.sum() == len(one)


@given(cuts())
def test_a_block_knows_the_columns_of_its_attributes(cut: Cut) -> None:
    """The answers of all ranges name, for each attribute, the column with the same positions."""
    families = default_families()
    _, found = counted(cut, families)
    table = found.problem.columns
    for attributes, answers in zip(found.attributes, found.answers, strict=True):
        columns = np.concatenate(answers)
        assert len(columns) == len(attributes.counts)
        assert np.all(np.diff(table.ptr)[columns].sum() >= attributes.counts.sum())


def test_twins_in_one_block_alone_are_none() -> None:
    """In the first block both words are always together, in the second they are not."""
    blocks = [block_of([["a", "b"]], [[0, 1]]), block_of([["a", "a"]], [[0, 1]])]
    cut = Cut([["a", "b"], ["a", "a"]], [[0, 1], [0, 1]], 2, blocks)
    families = default_families()
    one = read_columns(intern_sentences(cut.sentences), [s for f in families for s in f.sources])
    _, found = counted(cut, families)
    assert np.array_equal(found.problem.columns.ptr, one.ptr)


def test_sources_may_share_a_hash() -> None:
    """Attributes are told apart by their source too."""
    block = block_of([["a", "b"]], [[0, 1]])
    rows = attributes_of(block.text, [Template(((0, "word"),)), Template(((0, "lower"),))], 0)
    same = rows._replace(hashes=np.full_like(rows.hashes, 7))
    both = merge([same._replace(sources=np.arange(len(same.counts)))])
    assert len(both.counts) == len(rows.counts)
    found = look_up(both, np.arange(4) * 10, both)
    assert found.tolist() == [0, 10, 20, 30]


def test_too_many_tokens_are_refused() -> None:
    """Positions are 32 bits."""
    with pytest.raises(BudgetError, match=r"4,294,967,295 tokens"):
        attributes_of(block_of([["a"]], [[0]]).text, [], MOST_TOKENS)
