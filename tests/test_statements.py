"""Sentences of the pages about formulas, against what the code computes."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

import vcrf
from small_counts import dense_family, enumerate_norms, problem_of
from vcrf import VCRF
from vcrf.complexity import FamilyCounts, gaussian_integral, rademacher, risk_report
from vcrf.data import SyntheticLanguage
from vcrf.families import BIAS, Family, Template, intern_sentences
from vcrf.losses import HammingLoss, NgramCountLoss
from vcrf.problem import build_problem

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
WORD = Template(((0, "word"),))
NEXT = Template(((1, "word"),))  # a last token has none: not every factor has as many features


def row_of(page: str, begins: str) -> list[str]:
    """The cells of the row of a table that begins like this."""
    text = (DOCS / page).read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {begins}"))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_nothing_is_called_missing_that_is_there() -> None:
    """A section that says "not in the code" names nothing that can be imported."""
    for page in PAGES:
        for section in re.split(r"^(?=#+ )", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
            if re.search(r"not (yet )?in the code", section, re.IGNORECASE):
                assert not set(re.findall(r"\w+", section)) & set(vcrf.__all__), page


def test_notation_names_what_there_is() -> None:
    """Every name of the second column of docs/notation.md stands in the source."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py")))
    words = set(re.findall(r"\w+", source))
    rows = re.findall(r"^\| .*? \| (.*?) \|", (DOCS / "notation.md").read_text(encoding="utf-8"), re.MULTILINE)
    names = {
        name for row in rows for code in re.findall(r"`([^`]+)`", row) for name in re.findall(r"[A-Za-z_]\w*", code)
    }
    assert len(names) > 40
    assert names <= words | {"np"}, sorted(names - words)


@pytest.mark.parametrize("y", [[0, 0, 0, 0, 0], [0, 0, 1, 1, 0], [1, 0, 1, 0, 1]])
def test_ngram_counts_have_the_formula_of_their_row(y: list[int]) -> None:
    """Also where a candidate has more pairs of equal n-grams with the reference than the reference itself has."""
    _, _, formula, largest = row_of("losses.md", "`ngram-counts`")
    truth = [0, 0, 0, 1, 1]
    pairs = [sum(a == b for a in _bigrams(y) for b in _bigrams(truth)), _pairs(truth)]
    names = {"log": math.log, "min": min, "S": pairs[0], "S_true": pairs[1], "kappa": 0.5}
    loss = NgramCountLoss(n=2, kappa=0.5)
    assert loss(y, truth) == pytest.approx(eval(formula.partition(", S =")[0], names))
    most = eval(largest, names | {"S_true": _pairs([0] * 5)})
    assert loss.bound(5, 2) == pytest.approx(most)
    if y == [0] * 5:
        assert pairs[0] > pairs[1]  # what the clip is for


def _bigrams(y: list[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise(y))


def _pairs(y: list[int]) -> int:
    return sum(a == b for a in _bigrams(y) for b in _bigrams(y))


def test_the_normal_approximation_is_as_good_as_its_row_says() -> None:
    """Good for hundreds of sentences, poor for one or two; a share that the row states would have to hold for both."""
    row = " ".join(row_of("bounds.md", "`gaussian_integral`"))
    assert "good for hundreds of sentences and poor for one or two" in row
    families = [Family("words", (WORD,))]
    few = [problem_of(sentences, families, 2) for sentences in (["a"], ["a b"], ["a b", "b"], ["a", "b"])]
    off = [
        abs(
            gaussian_integral(FamilyCounts(problem).family(0)) / enumerate_norms(dense_family(problem, 0), math.inf) - 1
        )
        for problem in few
    ]
    assert max(off) > 0.1
    assert all(int(share) >= 100.0 * max(off) for share in re.findall(r"(\d+) %", row))
    corpus = SyntheticLanguage(n_labels=3, n_stems=30).sample(400, seed=2)
    y = np.zeros(sum(map(len, corpus.tokens)), np.uint32)
    many = FamilyCounts(build_problem(intern_sentences(corpus.tokens), y, 3, families)).family(0)
    assert gaussian_integral(many) == pytest.approx(rademacher(many, draws=20_000).value, rel=0.02)


def test_rows_that_paper_constants_leave_are_named() -> None:
    """Their complexities are ours under `--paper-constants` too: the note says so of each, and docs/bounds.md."""
    corpus = SyntheticLanguage(n_labels=3, n_stems=8, n_suffixes=1, mean_length=4.0).sample(60, seed=3)
    families = [Family("word", (WORD, NEXT)), Family("pairs", (BIAS,), 2)]
    model = VCRF(recipe="paper", families=families, base_strength=0.02).fit(corpus.tokens, corpus.labels).model_
    y = np.array([model.labels.index(label) for labels in corpus.labels for label in labels], np.uint32)
    text = intern_sentences(corpus.tokens)
    ours, printed = (
        risk_report(model, text, y, HammingLoss(), rho=1.0, paper_constants=is_printed) for is_printed in (False, True)
    )
    before, after = (
        {b.name: b.complexity for b, margin in zip(r.bounds, r.margins, strict=True) if margin == "additive"}
        for r in (ours, printed)
    )
    # Theorem 1 itself is printed with 4 sqrt(2) where we have 4.
    left = {name for name in before if after[name] / before[name] == pytest.approx(2.0**0.5) or name.startswith("weig")}
    said = {
        "moment bound": "theorem 1 for H_1, moment bound",
        "estimate": "theorem 1 for H_1, estimated complexity",
        "weighted L1": "weighted L1 (direct)",
        "H_p": "theorem 1 for H_p, p = 1.5",
        "H_{2,1} of attributes": "theorem 1 for H_{2,1}, groups by attribute",
    }
    assert left - {"theorem 3, families voted"} == set(said.values())
    assert after["weighted L1 (direct)"] == before["weighted L1 (direct)"]
    (note,) = (note for note in printed.notes if "not in the paper" in note)
    page = (DOCS / "bounds.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"What the paper does not state \((.*?)\)", page, re.DOTALL)
    for name in said:
        assert name.lower() in note.lower()
        assert name in " ".join(listed.split())
