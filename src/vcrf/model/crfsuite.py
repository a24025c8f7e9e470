"""CRFsuite's model files, read and written. All integers are 32 bits, weights 64 bits, little-endian.

    0    "lCRF", file size, "FOMC", version 100, 0, number of labels L, of attributes A
    28   offsets of: features (48), labels, attributes, references of labels, references of attributes
    48   "FEAT", size, n, and n features: 0 (state) or 1 (transition), attribute or label, label, weight
    then labels and attributes, a CQDB each (see `cqdb`)
    then "LFRF", size, L + 2, as many offsets (the last two 0), and at each: k, k numbers of transitions from the label
    then "AFRF", size, A, A offsets, and at each: k, k numbers of features of the attribute

Such files come from strangers: every offset is checked before it is followed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vcrf import kernels
from vcrf.errors import InputError
from vcrf.families.explicit import NamedFeature
from vcrf.families.templates import BIAS
from vcrf.families.text import encode_strings, intern_sentences
from vcrf.model import container
from vcrf.model.checks import check_model
from vcrf.model.cqdb import read_strings, write_strings
from vcrf.model.file import saying
from vcrf.model.model import FamilyFacts, Model
from vcrf.types import Bools, Floats, Ints, UInts32

MAGIC = b"lCRF"
_VERSION, _HEADER = 100, 48
_FEATURE = np.dtype([("type", "<u4"), ("src", "<u4"), ("dst", "<u4"), ("weight", "<f8")])
# Where all attributes of a model that was read come from: their strings are their names.
ATTRIBUTES, TRANSITIONS = "attributes", "transitions"
_ADVICE = "Write the model again with CRFsuite, or train it again."


class _Header(NamedTuple):
    labels: int
    attributes: int
    label_refs: int
    attribute_refs: int
    n_labels: int
    n_attributes: int


def read_crfsuite(path: Path) -> Model:
    """Read the model of a CRFsuite file."""
    return decode_crfsuite(bytes(container.map_file(path)), str(path))


def decode_crfsuite(data: bytes, name: str) -> Model:
    """The model of a CRFsuite file's bytes; `name` is for messages.

    Raises
    ------
    InputError
        When the bytes are no such file, damaged or inconsistent.
    """
    with saying(f"{name}: the CRFsuite file is not valid", _ADVICE):
        header = _read_header(data)
        features = _read_features(data)
        labels = read_strings(data[header.labels :], "labels")
        attributes = read_strings(data[header.attributes :], "attributes")
        if (len(labels), len(attributes)) != (header.n_labels, header.n_attributes):
            raise InputError("the numbers of labels and attributes differ from those of its header")
        _check_features(features, len(labels), len(attributes))
        is_state = features["type"] == 0
        _check_references(data, header.label_refs, b"LFRF", len(labels) + 2, features, ~is_state)
        _check_references(data, header.attribute_refs, b"AFRF", len(attributes), features, is_state)
        model = model_of_weights(labels, attributes, features[is_state], features[~is_state])
        check_model(model)
        return model


def encode_crfsuite(model: Model) -> bytes:
    """The bytes of the CRFsuite file of a model: labels with given attributes, and pairs of labels.

    Raises
    ------
    InputError
        When the model has something that such a file cannot hold.
    """
    if model.known is not None:
        raise InputError(
            "A CRFsuite file cannot hold the labels that words may have (`known_labels`), and would tag otherwise. "
            "Train without them, or save the model as .vcrf."
        )
    features, attributes = _features_of(model)
    labels = [_checked_text(label, "label") for label in model.labels]
    for name in attributes:
        _checked_text(name, "attribute")
    n, n_labels, n_attributes = len(features), len(labels), len(attributes)
    head = b"FEAT" + np.array([12 + 20 * n, n], "<u4").tobytes() + features.tobytes()
    body, offsets = _HEADER * b"\0" + head, [_HEADER]
    for strings in (labels, attributes):
        offsets.append(len(body))
        body += write_strings(strings)
    is_state = features["type"] == 0
    for magic, size, which in ((b"LFRF", n_labels + 2, ~is_state), (b"AFRF", n_attributes, is_state)):
        body += b"\0" * (-len(body) % 4)
        offsets.append(len(body))
        body += _references(magic, len(body), size, features["src"], which)
    if len(body) >= 1 << 32:
        raise InputError("A CRFsuite file holds 4 GB at most: this model is larger. Save it as .vcrf.")
    counts = np.array([0, n_labels, n_attributes, *offsets], "<u4").tobytes()
    header = MAGIC + np.array([len(body)], "<u4").tobytes() + b"FOMC" + np.array([_VERSION], "<u4").tobytes()
    return header + counts + body[_HEADER:]


def model_of_weights(labels: list[str], attributes: list[str], state: NDArray[Any], transition: NDArray[Any]) -> Model:
    """The model of features with `src`, `dst` and `weight`, sorted by attribute."""
    order = np.lexsort((state["dst"], state["src"]))
    state = state[order]
    n, n_labels = len(attributes), len(labels)
    keys = np.empty(n + 1, np.uint64)
    kernels.strings.hash_strings(*encode_strings(attributes), keys[:n])
    keys[n] = BIAS.keys(intern_sentences([[""]]))[0]
    counts = np.append(np.bincount(state["src"], minlength=n), len(transition))
    lengths = np.repeat(np.array([1, 2], np.uint32), [len(state), len(transition)])
    codes = np.concatenate([state["dst"], transition["src"] * np.uint32(n_labels) + transition["dst"]])
    weights = np.concatenate([state["weight"], transition["weight"]]).astype(np.float64)
    return Model(
        labels=list(labels),
        sources=[NamedFeature(ATTRIBUTES), BIAS],
        family_of=np.array([[-1, 0, -1], [-1, -1, 1]], np.int64),
        families=[_facts(ATTRIBUTES, 1, n, state["weight"]), _facts(TRANSITIONS, 2, 1, transition["weight"])],
        source_ptr=np.array([0, n, n + 1], np.int64),
        keys=keys,
        names=[*attributes, BIAS.name],
        ptr=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        lengths=lengths,
        codes=codes.astype(np.uint32),
        weights=weights,
    )


# ------------------------------------------------------------------------------------ reading


def _read_header(data: bytes) -> _Header:
    if len(data) < _HEADER or data[:4] != MAGIC:
        raise InputError("it does not begin as such a file does")
    size, version = (int.from_bytes(data[at : at + 4], "little") for at in (4, 12))
    if data[8:12] != b"FOMC" or version != _VERSION:
        raise InputError(f"expected a first-order Markov CRF of version {_VERSION}, got {data[8:12]!r}, {version}")
    if size != len(data):
        raise InputError(f"its header tells of {size} bytes, there are {len(data)}")
    _, n_labels, n_attributes, features, *offsets = np.frombuffer(data, "<u4", 8, 16).tolist()
    if features != _HEADER or any(not _HEADER <= offset <= len(data) - 12 for offset in offsets):
        raise InputError("a part lies outside the file")
    labels, attributes, label_refs, attribute_refs = offsets
    return _Header(labels, attributes, label_refs, attribute_refs, n_labels, n_attributes)


def _read_features(data: bytes) -> NDArray[Any]:
    _, n = _chunk(data, _HEADER, b"FEAT")
    if _HEADER + 12 + 20 * n > len(data):
        raise InputError(f"there is no room for its {n} features")
    return np.frombuffer(data, _FEATURE, n, _HEADER + 12)


def _chunk(data: bytes, at: int, magic: bytes) -> tuple[int, int]:
    """Size and number of elements of a part."""
    if data[at : at + 4] != magic or len(data) < at + 12:
        raise InputError(f"the part {magic.decode()} is missing")
    size, n = np.frombuffer(data, "<u4", 2, at + 4).tolist()
    return size, n


def _check_features(features: NDArray[Any], n_labels: int, n_attributes: int) -> None:
    is_state = features["type"] == 0
    limits = np.where(is_state, n_attributes, n_labels)
    if np.any(features["type"] > 1) or np.any(features["src"] >= limits) or np.any(features["dst"] >= n_labels):
        raise InputError("a feature is of no attribute or label")
    pairs = (features["type"].astype(np.int64) << 32 | features["src"]) * max(n_labels, 1) + features["dst"]
    if len(np.unique(pairs)) < len(pairs):
        raise InputError("a feature occurs twice")


def _check_references(data: bytes, at: int, magic: bytes, n: int, features: NDArray[Any], which: Bools) -> None:
    """The references of each label or attribute must be its features: CRFsuite scores with these alone."""
    _, found = _chunk(data, at, magic)
    if found != n or at + 12 + 4 * n > len(data):
        raise InputError(f"the part {magic.decode()} does not have {n} references")
    offsets = np.frombuffer(data, "<u4", n, at + 12).astype(np.int64)
    used = np.flatnonzero(offsets)
    if np.any(offsets[used] % 4) or np.any(offsets[used] + 4 > len(data)):
        raise InputError(f"a reference of the part {magic.decode()} lies outside the file")
    words = np.frombuffer(data, "<u4", len(data) // 4)
    counts = words[offsets[used] // 4].astype(np.int64)
    if int(counts.sum()) != int(which.sum()) or np.any(offsets[used] + 4 + 4 * counts > len(data)):
        raise InputError(f"the references of the part {magic.decode()} are not those of its features")
    begins = np.cumsum(counts) - counts
    ids = words[np.repeat(offsets[used] // 4 + 1 - begins, counts) + np.arange(int(counts.sum()))]
    expected = np.flatnonzero(which)
    if not np.array_equal(np.sort(ids), expected) or not np.array_equal(features["src"][ids], np.repeat(used, counts)):
        raise InputError(f"the references of the part {magic.decode()} are not those of its features")


def _facts(name: str, tags: int, n: int, weights: Floats) -> FamilyFacts:
    mass = float(np.minimum(np.abs(weights), 1e300).sum())
    return FamilyFacts(name, tags, 0.0, 0.0, 0.0, len(weights), n, len(weights), mass)


# ------------------------------------------------------------------------------------ writing


def _features_of(model: Model) -> tuple[NDArray[Any], list[str]]:
    """All features with a weight, state features by attribute and label first, and the attributes they have."""
    model = model.scored
    is_named = np.array([isinstance(source, NamedFeature) for source in model.sources], bool)
    is_bias = np.array([source == BIAS for source in model.sources], bool)
    source = np.repeat(np.arange(len(model.sources)), np.diff(model.source_ptr))
    row = np.repeat(np.arange(len(model.keys)), np.diff(model.ptr))
    is_state = is_named[source[row]] & (model.lengths == 1)
    is_transition = is_bias[source[row]] & (model.lengths == 2)
    if not np.all(is_state | is_transition | (model.weights == 0.0)):
        raise InputError(
            "A CRFsuite file holds weights of given attributes with one label, and of pairs of labels: this model has "
            "others. Train with vcrf.compat.CRF, or save it as .vcrf."
        )
    state = np.flatnonzero(is_state & (model.weights != 0.0))
    state = state[np.lexsort((model.codes[state], row[state]))]
    rows, src = np.unique(row[state], return_inverse=True)
    transition = np.flatnonzero(is_transition & (model.weights != 0.0))
    transition = transition[np.argsort(model.codes[transition], kind="stable")]
    features = np.zeros(len(state) + len(transition), _FEATURE)
    features["type"][len(state) :] = 1
    features["weight"] = model.weights[np.concatenate([state, transition])]
    features["src"][: len(state)], features["dst"][: len(state)] = src, model.codes[state]
    pairs: UInts32 = model.codes[transition]
    features["src"][len(state) :], features["dst"][len(state) :] = np.divmod(pairs, np.uint32(max(model.n_labels, 1)))
    return features, [model.names[i] for i in rows.tolist()]


def _references(magic: bytes, begin: int, n: int, src: UInts32, which: Bools) -> bytes:
    """The part of references; the two after the labels, for the ends of a sentence, are never used."""
    ids = np.flatnonzero(which).astype("<u4")
    of = src[which].astype(np.int64)
    n_listed = n - 2 if magic == b"LFRF" else n
    counts: Ints = np.bincount(of, minlength=n_listed)
    starts = begin + 12 + 4 * n + 4 * np.concatenate([np.zeros(1, np.int64), np.cumsum(counts + 1)])
    offsets = np.zeros(n, "<u4")
    offsets[:n_listed] = starts[:-1]
    words = np.insert(ids, np.cumsum(counts) - counts, counts.astype("<u4"))
    size = 12 + 4 * n + 4 * len(words)
    return magic + np.array([size, n], "<u4").tobytes() + offsets.tobytes() + words.astype("<u4").tobytes()


def _checked_text(value: Any, what: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise InputError(
            f"A CRFsuite file cannot hold the {what} {value!r:.60}: expected text without NUL. Save the model as .vcrf."
        )
    return value
