"""Given attributes: the flattening of sklearn-crfsuite, its errors, and named features."""

from __future__ import annotations

import math
from enum import Enum
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from corpora import dict_sentences, occurrences, read_named, tokens_of
from vcrf.errors import InputError
from vcrf.families import NamedFeature, explicit_families, read_attributes
from vcrf.families.reading import Reader

names = st.text(alphabet="abé=", min_size=1, max_size=3)
leaves = st.one_of(
    st.text(alphabet="xy:=", max_size=3),
    st.binary(max_size=3).filter(lambda b: b.isascii()),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([-2.5, 0.5, 1e-300, 1e40]),
    st.lists(st.sampled_from(["p", "q", b"r"]), unique=True),
    st.sets(st.sampled_from(["p", "q", "é"])),
)
nested = st.recursive(leaves, lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=6)
any_dict_sentences = st.lists(st.lists(st.dictionaries(names, nested, max_size=4), max_size=3), min_size=1, max_size=3)


def tokens_read(text):
    """Return {attribute: value} of every token, checking that no attribute is listed twice at a token."""
    found = [{} for _ in range(text.n_tokens)]
    assert np.all(np.diff(text.positions.astype(np.int64)) >= 0)
    for position, attribute, value in zip(text.positions, text.attributes, text.values, strict=True):
        assert text.names[attribute] not in found[position]
        found[position][text.names[attribute]] = value
    return found


def read_one(token):
    """Return {attribute: value} of a single token."""
    (found,) = tokens_read(read_attributes([[token]]))
    return found


# ---- flattening ----


@given(any_dict_sentences)
def test_feature_dicts_are_flattened_as_by_python_crfsuite(corpus):
    """Every attribute string and value is that of sklearn-crfsuite's own reader; zeros are left out."""
    pycrfsuite = pytest.importorskip("pycrfsuite")
    # CRFsuite cuts a string at a NUL.
    assume("\\x00" not in repr(corpus))
    text = read_attributes(corpus)
    expected = [item for sentence in corpus for item in pycrfsuite.ItemSequence(sentence).items()]
    got = tokens_read(text)
    assert got == [{name: value for name, value in item.items() if value != 0.0} for item in expected]
    assert np.diff(text.sent_ptr).tolist() == list(map(len, corpus))


@pytest.mark.parametrize(
    ("token", "attributes"),
    [
        ({"s": "x"}, {"s:x": 1.0}),
        ({"s": ""}, {"s:": 1.0}),
        ({"t": True, "f": False}, {"t": 1.0}),
        ({"t": np.bool_(True), "f": np.bool_(False)}, {"t": 1.0}),
        ({"n": 3, "m": -2.5, "z": 0, "h": np.float32(0.5)}, {"n": 3.0, "m": -2.5, "h": 0.5}),
        ({"d": {"a": {"b": "c"}, "n": -2, "t": True}}, {"d:a:b:c": 1.0, "d:n": -2.0, "d:t": 1.0}),
        ({"d": {"l": ["p", "q"]}, "e": {}}, {"d:l:p": 1.0, "d:l:q": 1.0}),
        ({"l": ["p", "q"], "k": {"r"}, "e": []}, {"l:p": 1.0, "l:q": 1.0, "k:r": 1.0}),
        ({"l": ("p",), "k": frozenset(["r"])}, {"l:p": 1.0, "k:r": 1.0}),
        ({b"k": b"v", "l": [b"p"], "d": {b"a": b"b"}}, {"k:v": 1.0, "l:p": 1.0, "d:a:b": 1.0}),
        ({"w": "é世😀".encode()}, {"w:é世😀": 1.0}),
        ({"w": np.str_("x")}, {"w:x": 1.0}),
        ({}, {}),
        (["a", "b:1", b"c=2"], {"a": 1.0, "b:1": 1.0, "c=2": 1.0}),
        (("a",), {"a": 1.0}),
        ([], {}),
        ([0.5, -2, 0, True], {"x0": 0.5, "x1": -2.0, "x3": 1.0}),
        (np.array([0.0, 2.0]), {"x1": 2.0}),
    ],
)
def test_each_rule_of_flattening(token, attributes):
    """Strings, booleans, numbers, nested dicts, lists, sets, bytes, lists of strings and rows of numbers."""
    assert read_one(token) == attributes


def test_rows_of_a_matrix_are_tokens():
    """Sentences may be arrays of shape (tokens, features)."""
    text = read_attributes([np.array([[1.0, 2.0], [0.0, -1.0]]), np.zeros((0, 2)), np.array([[3.0, 0.0]])])
    assert tokens_read(text) == [{"x0": 1.0, "x1": 2.0}, {"x1": -1.0}, {"x0": 3.0}]
    assert text.sent_ptr.tolist() == [0, 2, 2, 3]


@pytest.mark.parametrize(
    ("token", "attributes"),
    [
        (["a", "b", "a"], {"a": 2.0, "b": 1.0}),
        ({"l": ["p", "p", "p"]}, {"l:p": 3.0}),
        ({"a": {"b": 2.0}, "a:b": 0.5}, {"a:b": 2.5}),
        ({"a": "b", "a:b": 0.5}, {"a:b": 1.5}),
        ({"a": {"b": 2.0}, "a:b": -2.0, "c": 1}, {"c": 1.0}),
        ({"k": "v", b"k": b"v"}, {"k:v": 2.0}),
    ],
)
def test_an_attribute_given_twice_counts_with_the_sum(token, attributes):
    """Repeats add up as in CRFsuite; a sum of zero is no attribute."""
    assert read_one(token) == attributes


@given(st.lists(st.tuples(any_dict_sentences, st.sampled_from([None, "at the end", "among lists"])), max_size=4))
def test_a_reader_that_refused_a_text_reads_on(texts):
    """What was new in a refused text is forgotten, or learned; numbers mean what they would mean in a new reader."""
    reader = Reader()
    for sentences, refused in texts:
        if refused:
            odd = [{"new": str(len(reader)), "odd": None}] if refused == "at the end" else [["new"], [1.0]]
            with pytest.raises(InputError):
                reader.read([*sentences, odd])
        found = []
        for each in (reader, Reader()):
            sizes, entries = each.read(sentences)
            found.append((sizes.tolist(), [(each.names[e], each.values[e]) for e in entries.tolist()]))
        assert found[0] == found[1]
        assert len(reader) == len(reader.names) == len(reader.values)


def test_an_interrupted_reader_reads_on():
    """Whatever ends a reading, the numbers of the next are right."""

    class Word(str):
        def __hash__(self):
            raise KeyboardInterrupt

    reader = Reader()
    with pytest.raises(KeyboardInterrupt):
        reader.read([[{"a": "x", "b": "y"}, {"a": Word("z")}]])
    _, entries = reader.read([[{"c": "u", "a": "x"}]])
    assert [reader.names[entry] for entry in entries.tolist()] == ["c:u", "a:x"]


def test_sums_stay_at_their_token():
    """Repeats at one token leave the tokens around it alone."""
    text = read_attributes([[["a", "b"], ["b", "a", "a"], ["a"]]])
    assert tokens_read(text) == [{"a": 1.0, "b": 1.0}, {"b": 1.0, "a": 2.0}, {"a": 1.0}]


def test_order_of_a_set_does_not_matter():
    """Sets of strings are read in sorted order, so that two runs give the same numbers."""
    text = read_attributes([[{"s": {"q", "p", "r", "o"}}]])
    assert text.names == ["s:o", "s:p", "s:q", "s:r"]


# ---- errors ----


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
@pytest.mark.parametrize("wrap", [lambda v: {"f": v}, lambda v: {"f": {"g": v}}, lambda v: [0.0, v]])
def test_numbers_must_be_finite(value, wrap):
    """NaN and infinity are refused, with the feature and its place."""
    with pytest.raises(InputError, match=r"Feature '(f|f:g|x1)' \(sentence 1, token 2\) is -?(nan|inf).*finite"):
        read_attributes([[], [{}, {}, wrap(value)]])


@pytest.mark.parametrize("value", [None, object(), 1j, np.zeros(3)])
def test_values_must_be_of_a_known_kind(value):
    """None says to leave the feature out."""
    message = rf"Feature 'f' \(sentence 0, token 1\).*got {type(value).__name__}.*Leave the feature out"
    with pytest.raises(InputError, match=message):
        read_attributes([[{}, {"f": value}]])


@pytest.mark.parametrize("token", ["cat", b"cat", 3, None])
def test_tokens_must_be_of_one_kind(token):
    """A bare word or number among dicts is refused, with its place."""
    message = rf"Sentence 1, token 0: expected a dict.*got {type(token).__name__}.*must be of one kind"
    with pytest.raises(InputError, match=message):
        read_attributes([[{"a": "x"}], [token]])


@pytest.mark.parametrize("token", [{"a": "x"}, ["a:x"]])
def test_rows_of_numbers_do_not_mix_with_names(token):
    """A column is known by its place: a row among named features is a slip of the caller."""
    for corpus in ([[token], [[0.5]]], [[[0.5]], [token]]):
        with pytest.raises(InputError, match="must be of one kind"):
            read_attributes(corpus)


def test_dicts_mix_with_lists_of_attributes():
    """As in CRFsuite both are names with values; an attribute is the same whichever way it is given."""
    text = read_attributes([[{"a": "x", "n": 2.0}, ["a:x", "b"]], [[], {}]])
    assert tokens_read(text) == [{"a:x": 1.0, "n": 2.0}, {"a:x": 1.0, "b": 1.0}, {}, {}]
    assert text.names == ["a:x", "n", "b"]


@pytest.mark.parametrize("value", [[{"a": 1}], [None], [["a"]], (("a",),), {"g": [None]}])
def test_lists_hold_texts(value):
    """What would become a name by its repr is refused with its place."""
    message = r"Feature '(f|f:g)' \(sentence 1, token 0\): a list holds texts, got (dict|NoneType|list|tuple)"
    with pytest.raises(InputError, match=message):
        read_attributes([[{}], [{"f": value}]])


def test_the_first_place_of_an_error_is_named():
    """Tokens before it may hold anything."""
    with pytest.raises(InputError, match=r"sentence 1, token 1"):
        read_attributes([[{"f": ["x"]}], [{"f": 1.0}, {"f": float("nan")}, {"f": None}]])


def test_a_mapping_is_read_like_a_dict():
    """Read-only views and other mappings hold features as dicts do."""
    assert read_one(MappingProxyType({"a": 2.0, "b": "x"})) == {"a": 2.0, "b:x": 1.0}


def test_an_integer_beyond_floats_is_an_input_error():
    """A number too large for a float is as wrong as infinity."""
    with pytest.raises(InputError, match="Feature 'f'"):
        read_attributes([[{"f": 10**400}]])
    with pytest.raises(InputError, match="scale numeric features"):
        read_attributes([[{"f": 1e60}]])


# ---- named features ----


@given(dict_sentences, dict_sentences)
def test_named_features_read_what_was_given_under_their_name(training, tagging):
    """Positions and values of each attribute; a key is the attribute's content in any text."""
    texts = [read_attributes(training), read_attributes(tagging)]
    for name in ("a", "b", "t", "s", "n", "v"):
        key_of = {}
        for text, corpus in zip(texts, (training, tagging), strict=True):
            found = NamedFeature(name).read(text)
            flat = [
                (position, attribute, value)
                for position, sentence, index in tokens_of(corpus)
                for attribute, value in read_named(name, sentence[index]).items()
            ]
            assert sorted(found.positions.tolist()) == found.positions.tolist() == [t for t, _, _ in flat]
            assert found.is_single == (len({t for t, _, _ in flat}) == len(flat))
            values = np.ones(len(flat)) if found.values is None else found.values
            assert (found.values is None) == all(value == 1.0 for _, _, value in flat)
            keys = dict(zip(text.names, text.keys(), strict=True))
            got = sorted(zip(found.positions.tolist(), found.keys.tolist(), values.tolist(), strict=True))
            assert got == sorted((t, int(keys[attribute]), value) for t, attribute, value in flat)
            for attribute in occurrences(NamedFeature(name), corpus):
                assert key_of.setdefault(attribute, keys[attribute]) == keys[attribute] != 0
        assert len(set(key_of.values())) == len(key_of)


@given(dict_sentences)
def test_log_cardinality_counts_the_names_attributes(corpus):
    """The log of the number of distinct attributes that occur, 0 if there are none."""
    text = read_attributes(corpus)
    for name in ("a", "s", "v", "unseen"):
        n = len(occurrences(NamedFeature(name), corpus))
        np.testing.assert_allclose(NamedFeature(name).log_cardinality(text), np.log(max(n, 1)))


@given(dict_sentences)
def test_describe_gives_the_attribute_string(corpus):
    """At a position with one attribute of the name, that attribute."""
    text = read_attributes(corpus)
    for position, sentence, index in tokens_of(corpus):
        for name in sentence[index]:
            attributes = list(read_named(name, sentence[index]))
            if len(attributes) == 1:
                assert NamedFeature(name).describe(text, position) == attributes[0]


def test_a_name_that_tagging_never_gives_reads_nothing():
    """A family learnt in training may be absent from the text to tag."""
    found = NamedFeature("w").read(read_attributes([[{"v": "x"}]]))
    assert len(found.positions) == len(found.keys) == 0
    assert found.is_single


# ---- families ----


def test_families_are_named_after_the_features():
    """One family a feature name in order of first sight, then the plain tag patterns."""
    text = read_attributes([[{"w": "x", "d": {"a": 1.0, "b": "c"}}, {"l": ["p"], "w": "y", "n": 2}]])
    families = explicit_families(text, tags=3)
    assert [f.name for f in families] == ["w", "d", "l", "n", "tags:2", "tags:3", "ends:1", "ends:2"]
    assert [f.tags for f in families] == [1, 1, 1, 1, 2, 3, 1, 2]
    assert [f.sources for f in families[:4]] == [(NamedFeature(name),) for name in ("w", "d", "l", "n")]


@pytest.mark.parametrize(
    ("token", "family"),
    [
        (["word=cat"], ["word"]),
        (["word:cat"], ["word"]),
        (["word=a:b"], ["word"]),
        (["bias"], ["bias"]),
        ({"word=cat": 1.0}, ["word"]),
        ({"word=cat": True, "word=dog": 2}, ["word"]),
        ({"-1:word": "cat"}, ["-1:word"]),
        ([0.5, 2.0], ["x0", "x1"]),
    ],
)
def test_family_of_an_attribute_string(token, family):
    """Lists name the family before '=' or ':', dicts by their key, rows by the number of the column."""
    assert read_attributes([[token]]).source_names == family


class Colour(str, Enum):  # noqa: UP042 - its str() is Colour.RED
    """A str whose own text is its value."""

    RED = "red"


def test_reading_does_not_depend_on_what_came_before():
    """Pairs seen before are found again as they were: order, zeros, numbers, lists, members of enumerations."""
    tokens = [
        {"w": "red", "f": True, "n": 1.5, "z": False},
        {"n": 2.0, "f": True, "w": Colour.RED, "z": False},
        {"f": 1, "z": 0, "w": "red", "n": -1.0},
        {"w": "red", "l": ["a", "b"], "f": np.bool_(True), "z": 0.0},
        {"z": True, "f": False, "w": np.str_("red")},
    ]

    def read(some):
        text = read_attributes([some])
        last = text.positions == len(some) - 1
        zeros = text.zero_attributes[text.zero_positions == len(some) - 1]
        found = [(text.names[a], v) for a, v in zip(text.attributes[last], text.values[last], strict=True)]
        return found, [text.names[a] for a in zeros]

    expected = [
        ([("w:red", 1.0), ("f", 1.0), ("n", 1.5)], ["z"]),
        ([("n", 2.0), ("f", 1.0), ("w:red", 1.0)], ["z"]),
        ([("f", 1.0), ("w:red", 1.0), ("n", -1.0)], ["z"]),
        ([("w:red", 1.0), ("l:a", 1.0), ("l:b", 1.0), ("f", 1.0)], ["z"]),
        ([("z", 1.0), ("w:red", 1.0)], ["f"]),
    ]
    for token, want in zip(tokens, expected, strict=True):
        assert read([token]) == want
        assert read([*tokens, *tokens, token]) == want
