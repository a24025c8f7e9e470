"""Models that read attributes, served: JSON, CRFsuite's format, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import Call
from vcrf.data.attributes import attribute_line, read_attribute_lines
from vcrf.labelling.attributes import token_texts
from vcrf.web.models import Models, read_served

from .conftest import X, opened

SENTENCE = X[0]
LINES = [attribute_line("?", ["bias", f"w:{x['w']}", f"suffix:{x['suffix']}"]) for x in SENTENCE]


@pytest.fixture
def client(converted: Path, good: Path) -> Iterator[Any]:
    """A service of a converted model and of one that reads words."""
    yield from opened(Models([read_served(converted, "old"), read_served(good, "words")]))


def test_lines_are_read_as_they_are_written() -> None:
    """Colons and backslashes of names are escaped."""
    names = ["w:the", "a\\b", "c"]
    ((tokens, labels, source),) = read_attribute_lines([attribute_line("X", names)], "here")
    assert (list(tokens[0]), labels, source) == (names, ["X"], "here:1")


def test_what_stands_for_a_word() -> None:
    """One attribute of its own, if it has one."""
    assert token_texts(["a", "b"]) == ["a", "b"]
    assert token_texts([{"bias": 1.0, "w": "x"}]) == ["w:x"]
    assert token_texts([["bias", "w=x"], ["bias"], []]) == ["w=x", "bias", "(no attribute)"]
    assert token_texts([]) == []


@pytest.mark.parametrize(
    "given",
    [
        {"tokens": SENTENCE},
        {"sentences": [SENTENCE]},
        {"tokens": [["bias", f"w:{x['w']}", f"suffix:{x['suffix']}"] for x in SENTENCE]},
        {"tokens": LINES},
        {"text": "\n".join(LINES)},
        {"text": "\r\n".join([*LINES, "", ""])},
    ],
)
def test_tokens_come_in_every_form(client: Any, converted: Path, given: dict[str, Any]) -> None:
    """Objects of features, lists of attributes, lines: the same labels and posteriors."""
    from vcrf import load

    expected = load(converted).predict_marginals([SENTENCE])[0]
    found = client.post("/api/v1/tag", json=given).json()
    (sentence,) = found["sentences"]
    assert found["model"] == "old"
    assert sentence["labels"] == load(converted).predict([SENTENCE])[0]
    for row, reference in zip(sentence["posterior"], expected, strict=True):
        assert row == pytest.approx([reference[name] for name in found["names"]], abs=1e-6)
    assert len(sentence["tokens"]) == len(SENTENCE)
    assert not any(sentence["unknown"])


def test_why_lattice_and_what_to_label(client: Any) -> None:
    """Every address that takes a sentence takes one of attributes."""
    why = client.post("/api/v1/explain", json={"text": "\n".join(LINES), "position": 0}).json()
    assert why["explanations"][0]["contributions"]
    assert why["explanations"][0]["token"] == why["tokens"][0]
    lattice = client.post("/api/v1/lattice", json={"tokens": SENTENCE}).json()
    assert len(lattice["posterior"]) == len(SENTENCE)
    best = client.post("/api/v1/suggest", json={"sentences": X[:3], "n": 1}).json()["suggestions"]
    assert best[0]["tokens"] == X[best[0]["number"]]
    assert client.get("/api/v1/families").status_code == 200
    assert client.get("/api/v1/history").status_code == 404  # CRFsuite's files do not tell of their training


def test_a_model_tells_what_it_reads(client: Any) -> None:
    """And a sentence to begin with, in that form."""
    found = client.get("/api/v1/models").json()
    assert [model["reads"] for model in found["models"]] == ["attributes", "words"]
    assert found["models"][1]["example"] == ""
    begun = client.post("/api/v1/tag", json={"text": found["models"][0]["example"]}).json()
    assert len(set(begun["sentences"][0]["labels"])) > 1
    words = client.post("/api/v1/tag", json={"model": "words", "text": "a b"}).json()
    assert words["sentences"][0]["tokens"] == ["a", "b"]


def test_process_takes_crfsuites_format(client: Any, converted: Path) -> None:
    """A label a line comes back, as `vcrf tag --input-format attributes` writes it."""
    from vcrf import load

    labels = load(converted).predict([SENTENCE])[0]
    data = "\n".join([*LINES, "", *LINES[:2]])
    for fields in ({"data": data}, {"data": data.replace("\n", "\r\n"), "input": "attributes"}):
        result = client.post("/process", data=fields).json()["result"]
        assert result.split("\n\n")[0].split("\n") == labels
    assert "\t" in client.post("/process", data={"data": data, "marginals": ""}).json()["result"]
    refused = client.post("/process", data={"data": data, "input": "conllu"})
    assert (refused.status_code, "input=attributes" in refused.text) == (400, True)
    refused = client.post("/process", data={"data": "X\ta:b"})
    assert (refused.status_code, "data:1: expected `name` or `name:value`" in refused.text) == (400, True)


@pytest.mark.parametrize(
    "given",
    [
        {"text": "the cat sat"},
        {"tokens": ["the", "cat"]},
        {"tokens": [1, 2]},
        {"tokens": "the"},
        {"sentences": ["the"]},
        {"sentences": {}},
        {},
        {"text": 3},
    ],
)
def test_what_has_no_attributes_is_refused(client: Any, given: dict[str, Any]) -> None:
    """With what is expected."""
    for address in ("tag", "explain", "lattice"):
        body = given if address == "tag" else {name: value for name, value in given.items() if name != "sentences"}
        refused = client.post(f"/api/v1/{address}", json=body)
        assert refused.status_code == 400
        assert "This model reads attributes, not words" in refused.json()["error"]


@pytest.mark.parametrize(
    "text",
    [
        '{"tokens": [{"w": NaN}]}',
        '{"tokens": [{"w": Infinity}]}',
        '{"tokens": [{"w": 1e999}]}',
        '{"tokens": [{"w": 1%s}]}' % ("0" * 400),
        '{"tokens": [{"w": null}]}',
        '{"tokens": [{"w": [[1]]}]}',
        '{"tokens": [[1, {"a": 2}]]}',
    ],
)
def test_what_the_library_refuses_is_refused(client: Any, text: str) -> None:
    """Values that are no numbers or texts are the client's mistake, with a sentence."""
    refused = client.post("/api/v1/tag", content=text, headers={"Content-Type": "application/json"})
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]


@pytest.mark.parametrize("token", ['{"w": "\\ud800"}', '"\\t\\ud800"', '["\\ud800"]', '{"\\ud800": 1}'])
def test_half_characters_are_refused(client: Any, token: str) -> None:
    """They cannot be written into an answer."""
    for address in ("tag", "explain", "lattice"):
        text = f'{{"tokens": [{{"w": "a"}}, {token}]}}'
        refused = client.post(f"/api/v1/{address}", content=text, headers={"Content-Type": "application/json"})
        assert refused.status_code == 400


@pytest.mark.parametrize("depth", [50, 300, 480, 900, 960, 990, 1100, 5000])
def test_nested_features_are_read_or_refused(client: Any, depth: int) -> None:
    """However deep: no answer is a failure of the service."""
    text = '{"tokens": [' + '{"a": ' * depth + "1" + "}" * depth + "]}"
    answer = client.post("/api/v1/tag", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == (200 if depth == 50 else answer.status_code) in (200, 400)


def test_words_go_with_models_of_words(converted: Path, treebank: Path) -> None:
    """--data and --pool have words: the file that does not read them is named."""
    stderr = Call()("serve", converted, "--data", treebank, "--port", 0, code=2).stderr
    assert f"--data has words, and {converted} reads attributes" in " ".join(stderr.split())


def test_a_page_of_attributes(converted: Path) -> None:
    """`render` shows a sentence of features."""
    from vcrf import load

    text = str(load(converted).render(SENTENCE))
    assert "w:" in text
