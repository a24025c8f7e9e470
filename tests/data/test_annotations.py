"""Annotation tools: what is written is read back, partial answers stay open, malformed files name their place."""

from __future__ import annotations

import io
import json
from pathlib import Path

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
        else:
            labels += [f"U-{kind}"] if n == 1 else [f"B-{kind}", *[f"I-{kind}"] * (n - 2), f"L-{kind}"]
    return labels


@st.composite
def tasks(draw: st.DrawFn) -> tuple[str, list[Task]]:
    """A scheme and a few sentences labelled by it."""
    scheme = draw(st.sampled_from(["", "BIO", "BILOU"]))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        labels = draw(span_labels(scheme or "BIO"))
        tokens = draw(st.lists(words, min_size=len(labels), max_size=len(labels)))
        found.append(Task(tokens, labels, 0.5, "pool:1"))
    return scheme, found


@given(tasks())
def test_round_trips_give_the_same_sentences(drawn: tuple[str, list[Task]]) -> None:
    """Label Studio, Prodigy and lines of tokens, answered as they were predicted."""
    scheme, sentences = drawn
    answered = json.loads(label_studio(sentences, scheme))
    for task in answered:
        task["annotations"] = task.pop("predictions")
    lines = prodigy(sentences, scheme).replace('"meta"', '"answer": "accept", "meta"')
    for content in (json.dumps(answered), lines, json_lines(sentences)):
        found = list(parse_annotations(content, "a.json"))
        assert [list(s.tokens) for s in found] == [list(t.tokens) for t in sentences]
        assert [list(s.labels) for s in found] == [list(t.labels) for t in sentences]


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
    (sentence,) = parse_annotations(json.dumps(studio), "a.json")
    assert sentence.labels == ("X", None, frozenset({"X", "Y"}))
    lines = '{"tokens": ["a", "b"], "labels": ["X", null]}\n\n{"text": "c", "spans": [], "answer": "reject"}\n'
    (sentence,) = parse_annotations(lines, "a.jsonl")
    assert sentence.labels == ("X", None)


def test_doccano_and_files_without_a_scheme_are_spans() -> None:
    """[start, end, label] in the text, under its several names; blanks and punctuation lie between tokens."""
    for key in ("label", "labels", "entities"):
        line = json.dumps({"text": "Ada  saw Paris", key: [[0, 3, "PER"], [9, 14, "LOC"]]})
        (sentence,) = parse_annotations(line, "a.jsonl")
        assert (sentence.tokens, sentence.labels) == (("Ada", "saw", "Paris"), ("B-PER", "O", "B-LOC"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[{}, ", "a.json: not valid JSON"),
        ("[3]", "a.json: task 1: expected an object"),
        ('[{"data": {"text": "a b"}, "annotations": [{"result": {}}]}]', "task 1: `result` must be a list"),
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
    with pytest.raises(InputError, match=message.replace("[", r"\[").replace("(", r"\(")):
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
    path.write_text('{"text": "a", "spans": [], "answer": "ignore"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="no task has an answer yet"):
        read_corpus(path)
