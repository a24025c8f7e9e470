"""The concentration lemma: bounded differences of the empirical complexity, by all signs of small samples."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcrf.complexity import concentration, concentration_of_scores
from vcrf.errors import InputError


def complexity(sample):
    """(1/m) E sup_h sum_{i,f,y} sqrt|F_i| e_{ify} h_f(x_i, y); an example is (hypotheses, factors, assignments)."""
    m = len(sample)
    scores = np.concatenate([math.sqrt(x.shape[1]) * x.reshape(len(x), -1) for x in sample], axis=1)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=scores.shape[1])))
    return float((signs @ scores.T).max(axis=1).mean()) / m


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 4))
def test_one_example_moves_the_complexity_by_no_more(seed, m, n_hypotheses):
    """McDiarmid's inequality needs c with |change| <= c / m for each example; its width is c sqrt(log(2/d) / 2m)."""
    rng = np.random.default_rng(seed)
    n_values, bound = 2, 1.5

    def example():
        return rng.uniform(-bound, bound, (n_hypotheses, int(rng.integers(1, 3)), n_values))

    sample = [example() for _ in range(m)]
    other = [example(), *sample[1:]]
    delta = 0.05
    width = concentration_of_scores(
        score_bound=bound, max_size=2, max_assignments=2 * n_values, n_examples=m, delta=delta
    )
    c = width / math.sqrt(math.log(2.0 / delta) / (2 * m))
    assert abs(complexity(sample) - complexity(other)) <= c / m + 1e-12


def test_that_of_balls_is_sharper():
    """Indicators have one assignment a factor at a time: the special lemma counts occurrences, not assignments."""
    general = concentration_of_scores(score_bound=2.0, max_size=9, max_assignments=9 * 4, n_examples=50)
    assert concentration(radius=2.0, max_size=9, n_examples=50) == pytest.approx(general / 4.0)
    with pytest.raises(InputError, match="score_bound must be finite"):
        concentration_of_scores(score_bound=-1.0, max_size=9, max_assignments=9, n_examples=50)
