"""Templates: keys are a matter of content, descriptions say what was read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from corpora import BOUNDARY, READINGS, odd_sentences, read_template, read_word, templates, tokens_of
from vcrf.errors import InputError
from vcrf.families import BIAS, END, START, Template, intern_sentences


def contents(template, corpus):
    """Content of the template's attribute at every position, None where there is none."""
    return [read_template(template, sentence, index) for _, sentence, index in tokens_of(corpus)]


@given(templates, odd_sentences, odd_sentences)
def test_keys_are_equal_iff_the_contents_are(template, training, tagging):
    """Two texts that number their words differently agree on keys; 0 means no attribute."""
    keys = [*template.keys(intern_sentences(training)), *template.keys(intern_sentences(tagging))]
    seen = contents(template, training) + contents(template, tagging)
    assert [key == 0 for key in keys] == [content is None for content in seen]
    key_of = dict(zip(seen, keys, strict=True))
    assert [key_of[content] for content in seen] == keys
    assert len(set(key_of.values())) == len(key_of)


@given(templates, odd_sentences)
def test_read_lists_the_positions_that_have_the_attribute(template, corpus):
    """Occurrences are the nonzero keys in order of position, indicators, at most one a position."""
    text = intern_sentences(corpus)
    found = template.read(text)
    positions = [t for t, content in enumerate(contents(template, corpus)) if content is not None]
    assert found.positions.tolist() == positions
    assert found.positions.dtype == np.uint32
    assert found.keys.tolist() == template.keys(text)[positions].tolist()
    assert found.values is None
    assert found.is_single


@given(templates, odd_sentences)
def test_describe_says_what_was_read_where(template, corpus):
    """Reading, offset if any, and value of every part; the outside of the sentence is called the boundary."""
    text = intern_sentences(corpus)
    for position, sentence, index in tokens_of(corpus):
        content = read_template(template, sentence, index)
        if content is None:
            continue
        expected = []
        for (offset, reading), value in zip(template.parts, content, strict=True):
            where = f"[{offset:+d}]" if offset else ""
            expected.append(f"{reading}{where}={'<boundary>' if value == BOUNDARY else value}")
        assert template.describe(text, position) == (" ".join(expected) or "bias")


@pytest.mark.parametrize(
    ("template", "name", "window"),
    [
        (BIAS, "bias", ()),
        (START, "boundary[-1]", (-1,)),
        (Template(((1, "word"), (-1, "word"), (1, "shape"))), "word[+1]+word[-1]+shape[+1]", (-1, 1)),
        (Template(((0, "suffix:2"), (0, "prefix:1"))), "suffix:2+prefix:1", (0,)),
    ],
)
def test_name_and_window(template, name, window):
    """The name lists the parts in their order; the window is the sorted set of offsets."""
    assert template.name == name
    assert template.window == window


@given(odd_sentences)
def test_start_and_end_mark_the_ends_of_each_sentence(corpus):
    """START and END fire at the first and last token of each sentence, BIAS everywhere."""
    text = intern_sentences(corpus)
    first = [position for position, _, index in tokens_of(corpus) if index == 0]
    last = [position for position, sentence, index in tokens_of(corpus) if index == len(sentence) - 1]
    assert START.read(text).positions.tolist() == first
    assert END.read(text).positions.tolist() == last
    assert len(set(BIAS.keys(text).tolist())) <= 1
    assert BIAS.read(text).positions.tolist() == list(range(text.n_tokens))


def test_pad_reads_the_boundary_under_every_name_except_as_a_word():
    """Outside the sentence every reading is the boundary, which no word equals, not even the empty one."""
    text = intern_sentences([["", "a"]])
    for reading in READINGS:
        keys = Template(((-1, reading),), pad=True).keys(text)
        assert keys[0] != 0
        assert keys[0] != keys[1]
        assert Template(((-1, reading),)).keys(text)[0] == 0


def test_parts_in_another_order_are_another_template():
    """The word before and the word after are told apart."""
    text = intern_sentences([["a", "x", "b"], ["b", "x", "a"]])
    keys = Template(((-1, "word"), (1, "word"))).keys(text)
    assert keys[1] != keys[4]


def test_affixes_of_one_length_are_told_from_the_whole_word():
    """'ab' is its own prefix of length 2, and shares it with 'abc' only."""
    text = intern_sentences([["ab", "abc", "b", "xab"]])
    assert [key != 0 for key in Template(((0, "prefix:2"),)).keys(text)] == [True, True, False, True]
    prefix = Template(((0, "prefix:2"),)).keys(text)
    suffix = Template(((0, "suffix:2"),)).keys(text)
    assert prefix[0] == prefix[1] != prefix[3]
    assert suffix[0] == suffix[3] != suffix[1]


@given(templates, odd_sentences)
def test_log_cardinality_adds_up_over_the_parts(template, corpus):
    """Distinct values of a reading, the alphabet for each affix character, nothing for the boundary."""
    text = intern_sentences(corpus)
    vocabulary = {word for sentence in corpus for word in sentence}
    alphabet = set("".join(vocabulary))
    expected = 0.0
    for _, reading in template.parts:
        kind, _, size = reading.partition(":")
        if size:
            expected += int(size) * np.log(max(len(alphabet), 1))
        elif kind != "boundary":
            expected += np.log(max(len({read_word(reading, word) for word in vocabulary}), 1))
    np.testing.assert_allclose(template.log_cardinality(text), expected, rtol=1e-12)


def test_unknown_reading_is_an_error_that_lists_the_known_ones():
    """A typing error in a template is told at once."""
    with pytest.raises(InputError, match=r"Unknown reading 'stem': expected one of word, prefix:N, suffix:N"):
        Template(((0, "stem"),)).keys(intern_sentences([["a"]]))


@pytest.mark.parametrize("reading", ["prefix", "suffix:x", "prefix:-1", "word:3"])
def test_a_reading_with_a_wrong_size_is_an_error(reading):
    """Affixes need a length, words have none."""
    with pytest.raises(InputError, match="reading"):
        Template(((0, reading),)).keys(intern_sentences([["a"]]))
