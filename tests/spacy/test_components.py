"""spaCy's components: trained by `spacy train` as `vcrf train` trains, kept in files; DocBin in and out."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from commands import Call
from vcrf import VCRF, read_corpus
from vcrf.data import SyntheticLanguage
from vcrf.errors import InputError, NotFittedError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # spaCy's own imports
    pytest.importorskip("spacy.tokens")  # without spaCy the folder of these tests would be taken for it
    from spacy.tokens import Doc, DocBin
    from spacy.training import Example

    import spacy

pytestmark = pytest.mark.filterwarnings("ignore")

CORPUS = SyntheticLanguage(n_labels=4, seed=5, mean_length=6.0, n_stems=60).sample(80, seed=6)
TRAIN, TEST = CORPUS[:60], CORPUS[60:]


def bio(labels: list[str]) -> list[str]:
    """Entities of one kind: runs of a label."""
    kind = CORPUS.labels[0][0]
    before = ["", *labels[:-1]]
    return [("I-X" if a == kind else "B-X") if b == kind else "O" for a, b in zip(before, labels, strict=True)]


def docs_of(corpus: Any, vocab: Any) -> list[Doc]:
    """Documents with tags, parts of speech as morphology, and entities."""
    return [
        Doc(vocab, words=words, tags=labels, morphs=[f"Kind={y}" for y in labels], ents=bio(labels))
        for words, labels in zip(corpus.tokens, corpus.labels, strict=True)
    ]


def examples_of(corpus: Any, vocab: Any) -> list[Example]:
    """The same, to learn from."""
    return [Example(Doc(vocab, words=[t.text for t in doc]), doc) for doc in docs_of(corpus, vocab)]


@pytest.fixture(scope="module")
def nlp() -> Any:
    """A pipeline with both components, trained."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("vcrf_tagger")
    nlp.add_pipe("vcrf_ner", config={"params": {"tol": 1e-3}})
    nlp.initialize(lambda: examples_of(TRAIN, nlp.vocab))
    return nlp


def blank_docs(nlp: Any, corpus: Any) -> list[Doc]:
    """Documents without any label."""
    return [Doc(nlp.vocab, words=words) for words in corpus.tokens]


def test_tags_are_those_of_vcrf(nlp: Any) -> None:
    """One at a time and in batches."""
    expected = VCRF().fit(TRAIN.tokens, TRAIN.labels).predict(TEST.tokens)
    docs = list(nlp.pipe(blank_docs(nlp, TEST), batch_size=7))
    assert [[token.tag_ for token in doc] for doc in docs] == expected
    assert [[token.tag_ for token in nlp(doc)] for doc in blank_docs(nlp, TEST)] == expected
    assert nlp.get_pipe("vcrf_tagger").labels == tuple(sorted(CORPUS.label_set))
    accuracy = nlp.evaluate(examples_of(TEST, nlp.vocab))["tag_acc"]
    hits = [a == b for x, y in zip(expected, TEST.labels, strict=True) for a, b in zip(x, y, strict=True)]
    assert accuracy == pytest.approx(sum(hits) / len(hits))


def test_entities_have_probabilities(nlp: Any) -> None:
    """`doc.ents`, the group of spans with scores, and the extension tell the same."""
    tagger = nlp.get_pipe("vcrf_ner").tagger
    n = 0
    for doc in nlp.pipe(blank_docs(nlp, TEST)):
        group = doc.spans["vcrf"]
        assert [(s.start, s.end, s.label_) for s in group] == [(s.start, s.end, s.label_) for s in doc.ents]
        listed = [(span.start, span.end - 1, span.label_) for span in doc.ents]
        expected = tagger.entity_probability([[token.text for token in doc]], [listed])[0]
        assert group.attrs["scores"] == [span._.vcrf_prob for span in doc.ents] == pytest.approx(expected)
        n += len(listed)
    assert n
    assert 0.0 < nlp.evaluate(examples_of(TEST, nlp.vocab))["ents_f"] <= 1.0


def test_sentences_are_labelled_each(nlp: Any) -> None:
    """Where sentences are set, entities and labels are those of the sentences."""
    words = [word for tokens in TEST.tokens[:3] for word in tokens]
    starts = [t == 0 for tokens in TEST.tokens[:3] for t in range(len(tokens))]
    doc = nlp(Doc(nlp.vocab, words=words, sent_starts=starts))
    apart = [nlp(each) for each in blank_docs(nlp, TEST[:3])]
    assert [token.tag_ for token in doc] == [token.tag_ for each in apart for token in each]
    assert [span.text for span in doc.ents] == [span.text for each in apart for span in each.ents]
    assert len(nlp(Doc(nlp.vocab, words=[]))) == 0


def test_files_and_bytes_keep_the_pipeline(nlp: Any, tmp_path: Path) -> None:
    """One model file a component, and the same labels and scores."""
    nlp.to_disk(tmp_path / "nlp")
    assert [path.name for path in (tmp_path / "nlp" / "vcrf_tagger").iterdir()] == ["model.vcrf"]
    blank = spacy.blank("xx")
    blank.add_pipe("vcrf_tagger"), blank.add_pipe("vcrf_ner")
    for again in (spacy.load(tmp_path / "nlp"), blank.from_bytes(nlp.to_bytes())):
        for doc, other in zip(nlp.pipe(blank_docs(nlp, TEST)), again.pipe(blank_docs(again, TEST)), strict=True):
            assert [token.tag_ for token in doc] == [token.tag_ for token in other]
            assert doc.spans["vcrf"].attrs == other.spans["vcrf"].attrs


def test_morphology_and_missing_labels() -> None:
    """Another attribute; tokens without a label are left open."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("vcrf_tagger", config={"attribute": "morph"})
    nlp.initialize(lambda: examples_of(TRAIN, nlp.vocab))
    assert str(nlp(blank_docs(nlp, TEST)[0])[0].morph).startswith("Kind=")
    other = spacy.blank("xx")
    other.add_pipe("vcrf_tagger")
    docs = [Doc(other.vocab, words=["a", "b"], tags=["A", ""]), Doc(other.vocab, words=["b"], tags=["B"])]
    other.initialize(lambda: [Example(Doc(other.vocab, words=[t.text for t in doc]), doc) for doc in docs])
    assert other.get_pipe("vcrf_tagger").labels == ("A", "B")


def test_messages() -> None:
    """Not trained, nothing to learn, a stream of examples, an unknown attribute."""
    nlp = spacy.blank("xx")
    tagger = nlp.add_pipe("vcrf_tagger")
    with pytest.raises(NotFittedError, match="not trained yet"):
        tagger(Doc(nlp.vocab, words=["a"]))
    with pytest.raises(InputError, match="no labels to learn from"):
        nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=["a"]), Doc(nlp.vocab, words=["a"]))])
    nlp.config["training"]["max_epochs"] = -1
    with pytest.raises(InputError, match="Set max_epochs = 1"):
        nlp.initialize(lambda: examples_of(TRAIN, nlp.vocab))
    with pytest.raises(InputError, match="one of tag, pos, morph, got 'lemma'"):
        nlp.add_pipe("vcrf_tagger", name="other", config={"attribute": "lemma"})


def test_the_real_spacy_train(tmp_path: Path) -> None:
    """`spacy train` as users call it, by the configuration of `spacy init config`: the accuracy is that of VCRF."""
    from spacy.cli.init_config import init_config

    vocab = spacy.blank("xx").vocab
    for name, part in (("train", TRAIN), ("dev", TEST)):
        DocBin(docs=docs_of(part, vocab)).to_disk(tmp_path / f"{name}.spacy")
    # What `spacy init config` writes; without a second process that imports spaCy.
    init_config(lang="xx", pipeline=["vcrf_tagger"], silent=True).to_disk(tmp_path / "base.cfg")
    run(
        "train", tmp_path / "base.cfg", "-o", tmp_path / "out", "--paths.train", tmp_path / "train.spacy",
        "--paths.dev", tmp_path / "dev.spacy", "--training.max_epochs", 1, "--training.max_steps", 1,
    )  # fmt: skip
    nlp = spacy.load(tmp_path / "out" / "model-best")
    expected = VCRF().fit(TRAIN.tokens, TRAIN.labels)
    assert [[t.tag_ for t in nlp(doc)] for doc in blank_docs(nlp, TEST)] == expected.predict(TEST.tokens)
    reached = nlp.meta["performance"]["tag_acc"]
    assert reached == pytest.approx(expected.score(TEST.tokens, TEST.labels))


def test_docbin_in_and_out_of_the_commands(tmp_path: Path) -> None:
    """`vcrf train` learns from .spacy what it learns from the sentences; `vcrf tag` writes documents with labels."""
    call, vocab = Call(), spacy.blank("xx").vocab
    for name, part in (("train", TRAIN), ("test", TEST)):
        DocBin(docs=docs_of(part, vocab)).to_disk(tmp_path / f"{name}.spacy")
    corpus = read_corpus(tmp_path / "train.spacy", tag="xpos")
    assert (corpus.tokens, corpus.labels) == (TRAIN.tokens, TRAIN.labels)
    model, out = tmp_path / "m.vcrf", tmp_path / "out.spacy"
    call("train", tmp_path / "train.spacy", "--tag", "xpos", "-o", model)
    call("tag", model, tmp_path / "test.spacy", "-o", out)
    docs = DocBin().from_disk(out).get_docs(vocab)
    expected = VCRF().fit(TRAIN.tokens, TRAIN.labels).predict(TEST.tokens)
    assert [[token.tag_ for token in doc] for doc in docs] == expected
    test = tmp_path / "test.spacy"
    assert "Pass --output FILE.spacy" in call("tag", model, test, code=2).stderr
    assert "are not for .spacy files" in call("tag", model, test, "-o", out, "--marginals", code=2).stderr
    assert "Pass --tag xpos" in call("tag", model, test, "-o", out, "--tag", "upos", code=2).stderr
    assert "document 1, token 0 has no pos_" in call("train", test, "-o", tmp_path / "n", code=2).stderr
    (tmp_path / "bad.spacy").write_bytes(b"nothing")
    assert "not a DocBin of spaCy" in call("train", tmp_path / "bad.spacy", "-o", tmp_path / "n", code=2).stderr
    assert "has no --split" in call("train", test, "--split", "a", "-o", tmp_path / "n", code=2).stderr


def test_docbin_has_the_labels_where_training_had_them(tmp_path: Path) -> None:
    """A model of `tag_` with universal parts of speech writes `tag_`, and is tried on `tag_`."""
    call, vocab = Call(), spacy.blank("xx").vocab
    words, tags, other = ["a", "b", "a"], ["DET", "NOUN", "DET"], ["X", "X", "X"]
    data = tmp_path / "a.spacy"
    DocBin(docs=[Doc(vocab, words=words, tags=tags, pos=other)] * 4).to_disk(data)
    call("train", data, "--tag", "xpos", "-o", tmp_path / "m.vcrf")
    call("tag", tmp_path / "m.vcrf", data, "-o", tmp_path / "out.spacy")
    for doc in DocBin().from_disk(tmp_path / "out.spacy").get_docs(vocab):
        assert [token.tag_ for token in doc] == tags
        assert [token.pos_ for token in doc] == other
    assert json.loads(call("eval", tmp_path / "m.vcrf", data, "--json").stdout)["token_error"] == 0.0
    call("tag", tmp_path / "m.vcrf", data, "--tag", "upos", "-o", tmp_path / "out.spacy")
    assert [token.pos_ for token in next(DocBin().from_disk(tmp_path / "out.spacy").get_docs(vocab))] == tags


def run(*args: object) -> None:
    """Call spaCy's command."""
    result = subprocess.run(
        [sys.executable, "-m", "spacy", *map(str, args)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
