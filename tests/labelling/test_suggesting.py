"""What to label next: every strategy against the enumeration of all label sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from vcrf import VCRF
from vcrf.errors import InputError
from vcrf.metrics import entities

X = [["Ada", "Lovelace", "saw", "Paris"], ["New", "York", "slept"], ["Ada", "slept"]]
Y = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "I-LOC", "O"], ["B-PER", "O"]]
POOL = [["York", "saw"], [], ["Ada", "slept"], ["new", "words", "here"], ["slept"]]


@pytest.fixture(scope="module")
def tagger() -> VCRF:
    """A small tagger of entities."""
    return VCRF(n_jobs=1).fit(X, Y)


def enumerated(tagger: VCRF, sentence: list[str], by: str, per: str) -> float:
    """The formula of the module, from all sequences."""
    every = tagger.predict_kbest([sentence], k=len(tagger.classes_) ** len(sentence))[0]
    marginals = [
        sorted((sum(p for y, p in every if y[t] == label) for label in tagger.classes_), reverse=True)
        for t in range(len(sentence))
    ]
    if by == "margin":
        if per == "token":
            return float(np.mean([row[1] - row[0] for row in marginals]))
        return every[1][1] - every[0][1]
    if by == "least-confidence":
        value = -math.log(every[0][1])
    elif by == "entropy":
        value = -sum(p * math.log(p) for _, p in every if p > 0.0)
    else:
        best = every[0][0]
        value = sum(1.0 - sum(p for y, p in every if span in entities(y, "BIO")) for span in entities(best, "BIO"))
        value += sum(1.0 - sum(p for y, p in every if y[t] == "O") for t, label in enumerate(best) if label == "O")
    return value / len(sentence) if per == "token" else value


@pytest.mark.parametrize("by", ["least-confidence", "margin", "entropy", "span"])
@pytest.mark.parametrize("per", ["sentence", "token"])
def test_usefulness_is_exact(tagger: VCRF, by: str, per: str) -> None:
    """Values, order and labels; empty sentences are never chosen."""
    found = tagger.suggest(POOL, 10, by=by, per=per)
    assert {s.number for s in found} == {0, 2, 3, 4}
    values = [s.usefulness for s in found]
    assert values == sorted(values, reverse=True)
    for suggestion in found:
        sentence = POOL[suggestion.number]
        assert suggestion.usefulness == pytest.approx(enumerated(tagger, sentence, by, per), rel=1e-6, abs=1e-9)
        assert suggestion.labels == tagger.predict([sentence])[0]


def test_diversity_avoids_words_that_were_chosen(tagger: VCRF) -> None:
    """Copies of the most useful sentence come last; the greedy choice is that of trying all."""
    pool = [["zig", "zag"], ["zig", "zag"], ["zag", "zig"], ["Ada", "slept"]]
    plain = [s.number for s in tagger.suggest(pool, 4, per="token")]
    assert set(plain[:3]) == {0, 1, 2}
    assert [s.number for s in tagger.suggest(pool, 2, per="token", diversity=1.0)][1] == 3
    rng = np.random.default_rng(0)
    many = [[str(w) for w in rng.integers(0, 12, rng.integers(1, 5))] for _ in range(40)]
    order = [s.number for s in tagger.suggest(many, 40)]
    expected: list[int] = []
    covered: set[str] = set()
    while len(expected) < 10:
        worth = [
            (1 - place / len(order)) * (1 - 0.5 * np.mean([w in covered for w in many[i]])) if i not in expected else -1
            for place, i in enumerate(order)
        ]
        expected.append(order[int(np.argmax(worth))])
        covered.update(many[expected[-1]])
    assert [s.number for s in tagger.suggest(many, 10, diversity=0.5)] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "`n` must be"), ({"by": "luck"}, "`by` must be"), ({"per": "word"}, "`per` must be"),
        ({"diversity": 2.0}, "`diversity` must be"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(tagger: VCRF, options: dict[str, Any], message: str) -> None:
    """By name."""
    with pytest.raises(InputError, match=message):
        tagger.suggest(POOL, **options)


def test_what_a_strategy_needs_is_said() -> None:
    """Spans need labels of spans, diversity needs words; one label leaves nothing to ask."""
    plain = VCRF(n_jobs=1).fit([[{"w": "a"}], [{"w": "b"}]], [["A"], ["A"]])
    with pytest.raises(InputError, match="mark spans"):
        plain.suggest([[{"w": "a"}]], by="span")
    with pytest.raises(InputError, match="compares words"):
        plain.suggest([[{"w": "a"}]], diversity=0.5)
    assert [s.usefulness for s in plain.suggest([[{"w": "a"}]], by="entropy")] == [0.0]
    assert [s.usefulness for s in plain.suggest([[{"w": "a"}]], by="margin", per="token")] == [-1.0]
