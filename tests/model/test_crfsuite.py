"""CRFsuite's files: read as CRFsuite reads them, written byte for byte as it writes them, refused when forged."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcrf import VCRF, kernels
from vcrf.errors import InputError
from vcrf.labelling.tagger import ModelTagger
from vcrf.model.cqdb import read_strings, write_strings
from vcrf.model.crfsuite import decode_crfsuite, encode_crfsuite, read_crfsuite
from vcrf.problem import KnownLabels

pycrfsuite = pytest.importorskip("pycrfsuite")

Sentences = list[list[dict[str, object]]]


def sentences(seed: int, n: int, n_labels: int) -> tuple[Sentences, list[list[str]]]:
    """Drawn sentences with texts, numbers and lists, names beyond ASCII among them."""
    rng = random.Random(seed)
    X = [
        [
            {
                "w": rng.choice("abcdef") * rng.randint(1, 5),
                "é世": rng.choice("xyz"),
                "n": rng.uniform(-1, 1),
                "l": ["p"],
            }
            for _ in range(rng.randint(1, 7))
        ]
        for _ in range(n)
    ]
    return X, [[f"L{rng.randrange(n_labels)}" for _ in sentence] for sentence in X]


def trained(path: Path, X: Sentences, y: list[list[str]], **params: object) -> bytes:
    """The file that python-crfsuite writes."""
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params(params)
    for sentence, labels in zip(X, y, strict=True):
        trainer.append(sentence, labels)
    trainer.train(str(path))
    return path.read_bytes()


CASES = [
    (0, 30, 3, {"c2": 1.0}),
    (1, 60, 5, {"c1": 2.0, "c2": 0.1}),
    (2, 80, 12, {"c1": 0.1, "c2": 0.01, "feature.possible_transitions": 1}),
    (3, 20, 9, {"c1": 8.0}),
    (4, 20, 4, {"c1": 100.0}),  # no weight at all
    (5, 1, 1, {"c2": 0.1}),
]


@pytest.mark.parametrize(("seed", "n", "n_labels", "params"), CASES)
def test_a_model_of_crfsuite_is_the_same_here(seed, n, n_labels, params, tmp_path) -> None:
    """Labels, marginals and probabilities agree; written again the file is the same, byte for byte."""
    X, y = sentences(seed, n, n_labels)
    data = trained(tmp_path / "m.crfsuite", X, y, **params)
    model = read_crfsuite(tmp_path / "m.crfsuite")
    assert encode_crfsuite(model) == data
    theirs = pycrfsuite.Tagger()
    theirs.open(str(tmp_path / "m.crfsuite"))
    unseen, _ = sentences(seed + 100, 20, n_labels)
    ours = ModelTagger(model)
    for sentence in [*X, *unseen, [{}], [{"new": 1.0}, {}]]:
        assert ours.predict([sentence])[0] == theirs.tag(sentence)
        labels = [model.labels[0]] * len(sentence)
        assert ours.sequence_probability([sentence], [labels])[0] == pytest.approx(theirs.probability(labels), abs=1e-9)
        for t, row in enumerate(ours.predict_marginals([sentence])[0]):
            for label, probability in row.items():
                assert probability == pytest.approx(theirs.marginal(label, t), abs=1e-9)


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30), unique=True))
def test_tables_of_strings_come_back(strings: list[str]) -> None:
    """Whatever follows them."""
    assert read_strings(write_strings(strings), "words") == strings
    assert read_strings(write_strings(strings) + b"more", "words") == strings


def test_the_hash_is_lookup3() -> None:
    """The published values of `hashlittle` for two texts (Jenkins, lookup3.c, driver5)."""
    data = np.frombuffer(b"Four score and seven years ago", np.uint8)
    out = np.empty(1, np.uint32)
    kernels.lookup3.hash_all(np.array([0, len(data)]), data, out)
    assert out[0] == 0x17770551


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of CRFsuite."""
    X, y = sentences(7, 30, 3)
    return trained(tmp_path_factory.mktemp("crfsuite") / "m", X, y, c1=0.5)


def test_every_truncation_is_refused(content: bytes) -> None:
    """A file that was cut off anywhere is an InputError with its name."""
    for size in [*range(0, 64), *range(64, len(content), 97)]:
        with pytest.raises(InputError, match=r"m: the CRFsuite file is not valid"):
            decode_crfsuite(content[:size], "m")


@given(st.data())
def test_forged_files_are_refused_or_read(content: bytes, data: st.DataObject) -> None:
    """Any word replaced by any other: a model that tags, or an InputError. Nothing else, and quickly."""
    at = data.draw(st.integers(0, len(content) // 4 - 1)) * 4
    word = data.draw(st.one_of(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 2**31, 2**32 - 1, len(content)])))
    forged = content[:at] + word.to_bytes(4, "little") + content[at + 4 :]
    try:
        model = decode_crfsuite(forged, "m")
    except InputError as error:
        assert str(error).startswith("m: the CRFsuite file is not valid")  # noqa: PT017 - either is right
    else:
        assert len(ModelTagger(model).predict([[{"w": "a"}, {}]])[0]) == 2


@pytest.mark.parametrize(
    ("at", "word", "message"),
    [
        (4, 7, "tells of 7 bytes"),
        (12, 101, "version 100"),
        (20, 9, "differ from those of its header"),
        (32, 2**32 - 1, "lies outside the file"),
        (56, 2**31, "no room for its"),
        (64, 10**6, "of no attribute or label"),
    ],
)
def test_messages_about_forged_files(content: bytes, at: int, word: int, message: str) -> None:
    """Each says what is wrong."""
    with pytest.raises(InputError, match=message):
        decode_crfsuite(content[:at] + word.to_bytes(4, "little") + content[at + 4 :], "m")


def test_references_must_be_the_features(content: bytes) -> None:
    """CRFsuite scores by references: a file whose references leave features out would tag otherwise there."""
    at = int.from_bytes(content[44:48], "little")
    first = int.from_bytes(content[at + 12 : at + 16], "little")
    forged = content[:first] + (0).to_bytes(4, "little") + content[first + 4 :]
    with pytest.raises(InputError, match="references of the part AFRF"):
        decode_crfsuite(forged, "m")


def test_what_a_file_cannot_hold_is_refused(content: bytes) -> None:
    """Labels that are int, texts with NUL, models of words."""
    model = decode_crfsuite(content, "m")
    with pytest.raises(InputError, match="cannot hold the label 1"):
        encode_crfsuite(replace(model, labels=[1, 2, 3]))
    with pytest.raises(InputError, match="cannot hold the attribute"):
        encode_crfsuite(replace(model, names=["a\0b", *list(model.names)[1:]]))
    words = VCRF(tol=0.1).fit([["a", "b"]], [["A", "B"]])
    with pytest.raises(InputError, match="this model has others"):
        encode_crfsuite(words.model_)
    known = KnownLabels(np.array([7], np.uint64), np.array([0, 1]), np.array([0], np.uint32), model.n_labels, 1)
    with pytest.raises(InputError, match=r"labels that words may have \(`known_labels`\).*would tag otherwise"):
        encode_crfsuite(replace(model, known=known))
