"""Annotation tools: what is written is read back, partial answers stay open, malformed files name their place."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcrf import read_corpus
from vcrf.data.annotations import Task, json_lines, label_studio, parse_annotations, prodigy
from vcrf.errors import InputError

KINDS = ("PER", "LOC")
words = st.text("ab.é\U0001f600'", min_size=1, max_size=4)


@st.composite
def span_labels(draw: st.DrawFn, scheme: str) -> list[str]:
    """Valid labels of a scheme."""
    labels: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        kind, n = draw(st.sampled_from(["O", *KINDS])), draw(st.integers(1, 3))
        if kind == "O":
            labels += ["O"] * n
        elif scheme == "BIO":
            labels += [f"B-{kind}", *[f"I-{kind}"] * (n - 1)]
        elif scheme == "BIOES":
            labels += [f"S-{kind}"] if n == 1 else [f"B-{kind}", *[f"I-{kind}"] * (n - 2), f"E-{kind}"]
        else:
            labels += [f"U-{kind}"] if n == 1 else [f"B-{kind}", *[f"I-{kind}"] * (n - 2), f"L-{kind}"]
    return labels


LETTERS = {"": "BI", "BIO": "BI", "BILOU": "BILU", "BIOES": "BIES"}


@st.composite
def tasks(draw: st.DrawFn) -> tuple[str, list[Task]]:
    """A scheme and a few sentences labelled by it, some of them against its rules, as a tagger without constraints."""
    scheme = draw(st.sampled_from(list(LETTERS)))
    free = st.sampled_from(["O", *(f"{letter}-{kind}" for letter in LETTERS[scheme] for kind in KINDS)])
    found = []
    for _ in range(draw(st.integers(1, 3))):
        labels = draw(st.one_of(span_labels(scheme or "BIO"), st.lists(free, min_size=1, max_size=6)))
        tokens = draw(st.lists(words, min_size=len(labels), max_size=len(labels)))
        found.append(Task(tokens, labels, 3.5, 0.5, "pool:1"))
    return scheme, found


@given(tasks())
def test_round_trips_give_the_same_sentences(drawn: tuple[str, list[Task]]) -> None:
    """Label Studio, Prodigy and lines of tokens, answered as they were predicted."""
    scheme, sentences = drawn
    answered = json.loads(label_studio(sentences, scheme))
    for task in answered:
        task["annotations"] = task.pop("predictions")
    lines = prodigy(sentences, scheme).replace('"meta"', '"answer": "accept", "meta"')
    own = json_lines(sentences).replace('"answer": null', '"answer": "accept"')
    for content in (json.dumps(answered), lines, own):
        found = list(parse_annotations(content, "a.json"))
        assert [list(s.tokens) for s in found] == [list(t.tokens) for t in sentences]
        assert [list(s.labels) for s in found] == [list(t.labels) for t in sentences]


def test_what_nobody_has_answered_is_no_label() -> None:
    """A tagger's guesses are not trained on: left out with a message, and a file of nothing else is refused."""
    sentences = [Task(["a", "b"], ["X", "Y"], 3.5, 0.5, "pool:1"), Task(["c"], ["X"], 3.0, 0.5, "pool:2")]
    written = [("a.json", label_studio(sentences, ""))]
    written += [("a.jsonl", prodigy(sentences, "")), ("a.jsonl", json_lines(sentences))]
    for name, content in written:
        stream = io.StringIO(content)
        stream.name = name
        with pytest.raises(InputError, match=f"{name}: no task has an answer yet"):
            read_corpus(stream)
    first, second = prodigy(sentences, "").splitlines()
    stream = io.StringIO(json.dumps({**json.loads(first), "answer": "accept"}) + "\n" + second + "\n")
    stream.name = "a.jsonl"
    with pytest.warns(UserWarning, match=r"a.jsonl: 1 of 2 tasks have no answer yet and are left out"):
        corpus = read_corpus(stream)
    assert corpus.labels == [["X", "Y"]]
    # Those of an earlier version had no key `answer`.
    line = {"tokens": ["a"], "labels": ["X"], "usefulness": 1.0, "probability": 0.5, "source": "pool:1"}
    assert list(parse_annotations(json.dumps(line), "a.jsonl")) == [None]


def test_predicted_labels_count_where_the_span_was_left_alone() -> None:
    """A span that the person has changed is written by the rules; a forged list of labels is refused."""
    (task,) = json.loads(label_studio([Task(["a", "b", "c"], ["O", "I-X", "I-X"], 1.0, 0.5, "p:1")], "BIO"))
    assert task["data"]["predicted"] == ["O", "I-X", "I-X"]
    task["annotations"] = task.pop("predictions")
    (sentence,) = parse_annotations(json.dumps([task]), "a.json")
    assert sentence.labels == ("O", "I-X", "I-X")
    task["annotations"][0]["result"][0]["value"]["end"] = 3
    (sentence,) = parse_annotations(json.dumps([task]), "a.json")
    assert sentence.labels == ("O", "B-X", "O")
    task["data"]["predicted"] = ["O"]
    with pytest.raises(InputError, match="task 1: `predicted` must have one label a token"):
        list(parse_annotations(json.dumps([task]), "a.json"))


def test_partial_answers_stay_open() -> None:
    """Where tokens are regions, those without one are open, and several labels are a set; no answer, no sentence."""
    studio = [
        {
            "data": {"text": "a b c", "scheme": ""},
            "annotations": [
                {
                    "result": [
                        {"value": {"start": 0, "end": 1, "labels": ["X"]}},
                        {"value": {"start": 4, "end": 5, "labels": ["X", "Y"]}},
                    ]
                }
            ],
        },
        {"data": {"text": "not yet"}, "annotations": []},
        {"data": {"text": "no"}, "annotations": [{"result": [], "was_cancelled": True}]},
    ]
    sentence, later = parse_annotations(json.dumps(studio), "a.json")
    assert sentence.labels == ("X", None, frozenset({"X", "Y"}))
    assert later is None
    lines = '{"tokens": ["a", "b"], "labels": ["X", null]}\n\n{"text": "c", "spans": [], "answer": "reject"}\n'
    (sentence,) = parse_annotations(lines, "a.jsonl")
    assert sentence.labels == ("X", None)


def test_doccano_and_files_without_a_scheme_are_spans() -> None:
    """[start, end, label] in the text, under its several names; blanks and punctuation lie between tokens."""
    for key in ("label", "labels", "entities"):
        line = json.dumps({"text": "Ada  saw Paris", key: [[0, 3, "PER"], [9, 14, "LOC"]]})
        (sentence,) = parse_annotations(line, "a.jsonl")
        assert (sentence.tokens, sentence.labels) == (("Ada", "saw", "Paris"), ("B-PER", "O", "B-LOC"))


def test_as_many_regions_as_tokens_are_regions() -> None:
    """Of doccano; and a Prodigy task in which nothing was marked has no key `spans`."""
    entity = {"id": 1, "label": "LOC", "start_offset": 0, "end_offset": 5}
    for line in ({"text": "Paris", "entities": [entity], "relations": []}, {"text": "Paris", "label": [[0, 5, "LOC"]]}):
        (sentence,) = parse_annotations(json.dumps(line), "a.jsonl")
        assert sentence.labels == ("B-LOC",)
    task = {"text": "he slept", "answer": "accept", "_task_hash": 3}
    for spans in ({}, {"spans": None}, {"spans": []}):
        (sentence,) = parse_annotations(json.dumps({**task, **spans}), "a.jsonl")
        assert sentence.labels == ("O", "O")


def test_other_results_of_label_studio_are_left_alone() -> None:
    """Choices and relations beside the regions; a file of one task, or of a task a line, is read too."""
    region = {"type": "labels", "value": {"start": 0, "end": 1, "labels": ["X"]}}
    others = [{"type": "choices", "value": {"choices": ["good"]}}, {"type": "relation", "from_id": "a", "to_id": "b"}]
    task = {"data": {"text": "a b"}, "annotations": [{"result": [*others, region]}]}
    for content in (json.dumps([task]), json.dumps(task)):
        (sentence,) = parse_annotations(content, "a.json")
        assert sentence.labels == ("B-X", "O")


def answered(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As Label Studio exports them when a person agrees with every prediction."""
    return [{**task, "id": i, "annotations": task["predictions"]} for i, task in enumerate(tasks, 1)]


EXAMPLES = {
    "": [Task(["Ada", "\U0001f600", "slept"], ["NOUN", "SYM", "VERB"], 7.5, 0.25, "pool:1")],
    "BIO": [Task(["Ada", "Lovelace", "\U0001f600", "Paris"], ["B-PER", "I-PER", "O", "B-LOC"], 7.5, 0.25, "pool:1")],
}


@pytest.mark.parametrize("scheme", EXAMPLES)
def test_label_studio_accepts_the_tasks(scheme: str, tmp_path: Path) -> None:
    """Its own validator takes tasks and predictions, and its own converter reads the same labels."""
    interface = pytest.importorskip("label_studio_sdk.label_interface")
    converter = pytest.importorskip("label_studio_sdk.converter")
    content = json.loads(label_studio(EXAMPLES[scheme], scheme))
    names = {name for task in content for r in task["predictions"][0]["result"] for name in r["value"]["labels"]}
    config = (
        "<View><Labels name='label' toName='text'>"
        + "".join(f"<Label value='{name}'/>" for name in sorted(names))
        + "</Labels><Text name='text' value='$text'/></View>"
    )
    checks = interface.LabelInterface(config)
    for task in content:
        assert checks.validate_task({"data": task["data"]})
        assert checks.validate_prediction(task["predictions"][0], return_errors=True) in (True, [])
    exported = tmp_path / "export.json"
    exported.write_text(json.dumps(answered(content)), encoding="utf-8")
    converter.Converter(config, project_dir=None).convert_to_conll2003(
        str(exported), str(tmp_path / "out"), is_dir=False
    )
    (written,) = (tmp_path / "out").iterdir()
    rows = [line.split(" ") for line in written.read_text(encoding="utf-8").splitlines()[1:] if line]
    (sentence,) = parse_annotations(exported.read_text(encoding="utf-8"), "a.json")
    assert [row[0] for row in rows] == list(sentence.tokens)
    found = [row[-1] for row in rows]
    assert (found if scheme else [label.removeprefix("B-") for label in found]) == list(sentence.labels)


@pytest.mark.parametrize("scheme", EXAMPLES)
def test_label_studio_scores_are_shares(scheme: str) -> None:
    """Its validator refuses others; the usefulness is a field of the data."""
    (task,) = json.loads(label_studio(EXAMPLES[scheme], scheme))
    assert task["predictions"][0]["score"] == 0.25
    assert task["data"]["usefulness"] == 7.5


@pytest.mark.parametrize("scheme", EXAMPLES)
def test_spans_of_prodigy_fit_the_tokens_of_spacy(scheme: str) -> None:
    """As Prodigy aligns them: characters, tokens and text agree."""
    # Without spaCy the folder tests/spacy would be taken for it: ask for a module that it alone has.
    tokens = pytest.importorskip("spacy.tokens")
    vocab = pytest.importorskip("spacy.vocab")
    task = json.loads(prodigy(EXAMPLES[scheme], scheme))
    doc = tokens.Doc(vocab.Vocab(), words=[token["text"] for token in task["tokens"]])
    assert doc.text.strip() == task["text"]
    assert [token.idx for token in doc] == [token["start"] for token in task["tokens"]]
    for span in task["spans"]:
        found = doc.char_span(span["start"], span["end"], label=span["label"])
        assert (found.start, found.end - 1) == (span["token_start"], span["token_end"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[{},\n{}, ", "a.json:2: not valid JSON: Expecting value at column 5"),
        ("\n{} 3", "a.json:2: not valid JSON: Extra data"),
        ("PER 3", "a.json:1: not valid JSON"),
        ("[" + "9" * 10**5 + "]", "a.json:1: not valid JSON"),
        ("[3]", "a.json: task 1: expected an object"),
        ('[{"data": {"text": "a b"}, "annotations": [{"result": {}}]}]', "task 1: `result` must be a list"),
        ('[{"text": "a b", "label": []}]', "task 1: expected `data` and `annotations`. Export as JSON"),
        ('{"text": "a", "entities": [{"start_offset": 0}]}', "a.json:1: a region needs"),
        ('[{"data": {"text": "a"}, "annotations": 3}]', "task 1: `annotations` must be a list"),
        ('[{"data": {"text": "a"}, "annotations": [3]}]', "task 1: expected an object"),
        (
            '[{"data": {"text": "a"}, "annotations": [{"result": [{"type": "hyper", "value": {"start": "/p"}}]}]}]',
            "task 1: a region of type 'hyper' cannot be read",
        ),
        ('{"text": "ab", "label": [[0, 99, "X"]]}', "a.json:1: the region from 0 to 99 (X) ends after the text"),
        ('{"tokens": ["a"], "labels": ["X", "Y"]}', "a.json:1: 1 tokens have 2 labels"),
        ('{"data": {"text": "a"}, "annotations": [{"result": 3}]}', "a.json:1: `result` must be a list"),
        ('{"text": "a", "spans": null}', "a.json:1: expected `spans`, or `labels`"),
        ('{"text": "a"}', "a.json:1: expected `spans`, or `labels`"),
        ('{"text": "ab cd", "spans": [{"start": 1, "end": 2, "label": "X"}]}', "a.json:1: the region from 1 to 2"),
        ('{"text": "a", "spans": []}\n{"text": "a b", "spans": [{"start": 0}]}', "a.json:2: a region needs"),
        ('{"tokens": ["a"], "labels": [3]}', "a label is text, null"),
        ('{"text": "a b", "label": [[0, 1, "X"], [0, 1, "Y"]]}', "overlaps another"),
        ('{"tokens": ["z"], "text": "a", "spans": [{"start": 0, "end": 1, "label": "X"}]}', "is not in the text"),
        ('{"text": "a", "spans": [], "meta": {"scheme": "XYZ"}}', "`scheme` must be"),
        ('{"tokens": [], "labels": []}', "at least one"),
    ],
)
def test_malformed_files_name_their_place(content: str, message: str) -> None:
    """By line, or by the number of the task."""
    with pytest.raises(InputError, match=re.escape(message)):
        list(parse_annotations(content, "a.json"))


def test_the_reader_takes_annotations(tmp_path: Path) -> None:
    """By the name of the file, or when told; a file without answers is refused."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Ada slept", "label": [[0, 3, "PER"]]}\n', encoding="utf-8")
    corpus = read_corpus(path)
    assert (corpus.labels, corpus.label_set) == ([["B-PER", "O"]], ("B-PER", "O"))
    assert corpus.sources == [f"{path}:1"]
    told = read_corpus(io.StringIO('{"tokens": ["a"], "labels": [null]}'), format="annotations")
    assert told.labels == [[None]]
    for nothing in ('{"text": "a", "spans": [], "answer": "ignore"}\n', "\n"):
        path.write_text(nothing, encoding="utf-8")
        with pytest.raises(InputError, match="no task has an answer yet"):
            read_corpus(path)
    path.write_text("the DET\n", encoding="utf-8")
    with pytest.raises(InputError, match=re.escape("a.jsonl:1: not valid JSON")):
        read_corpus(path)
