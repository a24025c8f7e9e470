"""A pass that will take minutes or gigabytes is told before it begins, and refused if it cannot fit."""

from __future__ import annotations

import numpy as np
import pytest

from vcrf import M3N, VCRF
from vcrf.errors import BudgetError, LargeProblemWarning
from vcrf.structures import effort


def many_labels(n_labels: int) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences with so many labels, each of them once."""
    labels = [[f"L{i}" for i in range(a, a + 10)] for a in range(0, n_labels, 10)]
    return [[f"w{label}" for label in sentence] for sentence in labels], labels


@pytest.mark.parametrize(
    "estimator",
    [
        VCRF(n_jobs=1, inference="dense"),
        VCRF(recipe="paper", n_jobs=1, norm="group", base_strength=1e-3, inference="dense"),
        M3N(n_jobs=1),
    ],
)
def test_a_long_pass_is_told_before_it_begins(estimator: VCRF) -> None:
    """With the time, the memory, and what to do."""
    X, y = many_labels(3000)
    with pytest.raises(LargeProblemWarning, match=r"3,000 labels in tag patterns of length 2 at 3,000 tokens: one"):
        estimator.fit(X, y)


def test_a_problem_larger_than_the_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is allocated; the message says how much it needs and how much there is."""
    monkeypatch.setattr(effort, "total_memory", lambda: 1e6)
    X, y = many_labels(400)
    with pytest.raises(BudgetError, match=r"at the least; there are 0.0 GB. Use fewer labels .*, `tags=1`, or fewer"):
        VCRF().fit(X, y)


def test_shorter_patterns_are_no_advice_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single labels are the shortest."""
    monkeypatch.setattr(effort, "total_memory", lambda: 1e5)
    X, y = many_labels(400)
    with pytest.raises(BudgetError, match=r"coarser column of tags\), or fewer sentences"):
        VCRF(tags=1).fit(X, y)


def test_an_ordinary_problem_is_not_worth_a_word() -> None:
    """Fifty labels are nothing; warnings are errors here."""
    X, y = many_labels(50)
    VCRF(max_passes=None, n_jobs=1, tol=0.1).fit(X, y)


@pytest.mark.parametrize(
    ("n_labels", "n_tokens", "n_blocks", "seconds", "n_gigabytes"),
    # Measured on two cores that others used too: the first scan, and the most memory above that of an empty process.
    [(824, 1891, 1, 4.4, 0.14), (1319, 1783, 1, 11.5, 0.27), (1000, 18462, 4, 71.5, 1.01)],
)
def test_the_estimate_is_near_what_was_measured(
    n_labels: int, n_tokens: int, n_blocks: int, seconds: float, n_gigabytes: float
) -> None:
    """By a factor of two: it is to tell minutes from hours."""
    problem = VCRF()._read(*many_labels(100), None).problem
    large = _Sized(problem, n_labels, n_tokens)
    keep = np.ones(len(problem.columns), bool)
    found = effort.estimate(large, keep, 2, n_blocks, True)  # type: ignore[arg-type]
    # The scan of label pairs reads the column that is everywhere, as the pass does.
    assert 0.5 < 2 * found.seconds / seconds < 2.0
    assert 0.5 < found.n_bytes / 1e9 / n_gigabytes < 2.0


def test_the_estimate_of_passes_over_pairs_is_near_what_was_measured() -> None:
    """By a factor of two: 5.0 s of one thread for a scan, and 0.82 GB above an empty process."""
    large = _Sized(VCRF()._read(*many_labels(100), None).problem, 845, 72974)
    found = effort.estimate(large, np.ones(len(large.columns), bool), 1, 4, True, True)  # type: ignore[arg-type, attr-defined]
    assert 0.5 < found.seconds / 5.0 < 2.0
    assert 0.5 < found.n_bytes / 0.82e9 < 2.0


def test_passes_over_pairs_are_estimated_for_less() -> None:
    """A thousand labels: a product of matrices and few pairs in the place of all arcs, and no messages are kept."""
    problem = VCRF()._read(*many_labels(100), None).problem
    large = _Sized(problem, 1000, 18462)
    keep = np.ones(len(problem.columns), bool)
    dense, pairs = (effort.estimate(large, keep, 2, 4, True, has_pairs) for has_pairs in (False, True))  # type: ignore[arg-type]
    assert pairs.seconds < 0.2 * dense.seconds
    assert pairs.n_bytes < dense.n_bytes


class _Sized:
    """A problem that is said to have other sizes; its columns hardly count."""

    def __init__(self, problem: object, n_labels: int, n_tokens: int) -> None:
        self._problem, self.n_labels, self.n_tokens = problem, n_labels, n_tokens

    def __getattr__(self, name: str) -> object:
        return getattr(self._problem, name)


def test_memory_is_known_or_infinite() -> None:
    """Never less than this process has."""
    assert effort.total_memory() > 1e8
