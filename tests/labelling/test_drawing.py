"""Reasons in words, and the picture of a sentence."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from vcrf import VCRF
from vcrf.data import small_english
from vcrf.errors import InputError
from vcrf.labelling.drawing import COLOURS, draw_sentence, label_colours, sentence_svg
from vcrf.labelling.explain import TokenExplanation, explain
from vcrf.labelling.reasons import _attribute, first_reasons, question, reasons, said_reasons, shown

SENTENCE = ["The", "gloomy", "nurse", "will", "<watch>", "the", "light", "."]


@pytest.fixture(scope="module")
def explained() -> list[TokenExplanation]:
    """A sentence with a letter that SVG has to escape."""
    corpus = small_english(80)
    return explain(VCRF().fit(corpus.tokens, corpus.labels), SENTENCE)


def test_reasons_sum_to_the_difference(explained: list[TokenExplanation]) -> None:
    """Nothing is left out by putting it in words."""
    for position, found in enumerate(explained):
        total = math.fsum(reason.value for reason in reasons(found, SENTENCE, position))
        assert total == pytest.approx(found.difference, abs=1e-9)


def test_reasons_are_said_once_and_the_weightiest_first(explained: list[TokenExplanation]) -> None:
    """What speaks for one label and against the other is one reason."""
    said = reasons(explained[1], SENTENCE, 1)
    assert len({reason.text for reason in said}) == len(said)
    assert [abs(reason.value) for reason in said] == sorted((abs(reason.value) for reason in said), reverse=True)


def test_what_is_not_shown_is_summed_on_its_side(explained: list[TokenExplanation]) -> None:
    """So that a sum of small reasons hides no larger one of the other side."""
    for position, found in enumerate(explained):
        every = reasons(found, SENTENCE, position)
        listed = first_reasons(found, SENTENCE, position, 3)
        assert listed[:3] == every[:3]
        assert math.fsum(reason.value for reason in listed) == pytest.approx(found.difference, abs=1e-9)
        assert [reason.value >= 0.0 for reason in listed[3:]] in ([True, False], [True], [False], [])
        lines = said_reasons(found, SENTENCE, position, 3)
        assert len(lines) == len(listed) + 1
        assert lines[-1] == f"  {found.difference:5.2f} for {found.label}: all together"
    only = TokenExplanation("a", "X", 1.0, None, 0.0, [], 0.0, [])
    assert said_reasons(only, ["a"], 0, 3) == []


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        ("suffix:2=ly", "it ends in “ly”"),
        ("prefix:1[+1]=u", "the word after begins with “u”"),
        ("word[-1]=the", "the word before is “the”"),
        ("lower=saw", "it is the word “saw”, capitals aside"),
        ("word[+2]=on", "the second word after is “on”"),
        ("kind[-1]=title kind=letters", "the word before begins with a capital and it does not begin with a capital"),
        ("boundary[-1]=<boundary>", "it is the first word"),
        ("word[+2]=<boundary>", "it is the last word"),
        ("kind=odd", "it is of the kind odd"),
        ("shape=Xx", "it is made of capitals, then small letters"),
        ("shape[-1]=c", "the word before is made of letters"),
        ("long_shape=Xxx-d", "it is made of 1 capital, then 2 small letters, then 1 “-”, then 1 digit"),
        ("length=4", "it has the length 4"),
        ("class:4=0110", "it is in the class 0110"),
        ("bias", "how common the label is"),
        ("my:feature=3", "my:feature=3"),
        ("colour=red", "colour=red"),
    ],
)
def test_attributes_in_words(attribute: str, text: str) -> None:
    """Those of text families; others stay as their author wrote them."""
    assert _attribute(attribute) == text


def test_probabilities_for_people() -> None:
    """Nearly sure is not sure."""
    assert [shown(p) for p in (1.0, 0.9999, 0.996, 0.5, 0.001, 0.0)] == [
        "100 %", "99.9 %", "99.6 %", "50 %", "<1 %", "0 %",
    ]  # fmt: skip


def test_the_only_label_has_no_runner_up() -> None:
    """The question says so."""
    assert question(TokenExplanation("a", "X", 1.0, None, 0.0, [], 0.0, [])) == "“a” can only be X"


def test_picture_is_valid_and_has_every_word(explained: list[TokenExplanation], tmp_path: Path) -> None:
    """With letters escaped."""
    draw_sentence(explained, tmp_path / "sentence.svg")
    texts = [element.text for element in ElementTree.parse(tmp_path / "sentence.svg").iter() if element.text]
    assert all(token in texts for token in SENTENCE)
    assert any(text.startswith("Why is “") for text in texts)


def test_picture_breaks_lines(explained: list[TokenExplanation]) -> None:
    """A long sentence makes a higher picture."""
    assert 'height="' in sentence_svg(explained * 5)
    heights = [int(sentence_svg(explained * n).split('height="')[1].split('"')[0]) for n in (1, 5)]
    assert heights[0] < heights[1]


def test_labels_have_different_colours() -> None:
    """As long as there are enough."""
    labels = [f"L{i}" for i in range(len(COLOURS))]
    assert len(set(label_colours(labels).values())) == len(COLOURS)
    assert len(label_colours([*labels, "M"])) == len(COLOURS) + 1


def test_other_files_and_empty_sentences_are_refused(explained: list[TokenExplanation], tmp_path: Path) -> None:
    """With what was expected."""
    with pytest.raises(InputError, match=r"expected a picture's name that ends in .svg, got '.png'"):
        draw_sentence(explained, tmp_path / "sentence.png")
    with pytest.raises(InputError, match="got no token"):
        sentence_svg([])
