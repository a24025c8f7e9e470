"""Methods are names with parameters, known ones or the user's."""

from __future__ import annotations

import pytest

from vcrf import VCRF
from vcrf.errors import InputError
from vcrf.experiments.methods import chosen_methods, known_methods

KNOWN = known_methods(words=1, tags=2, affix=3)


def test_known_methods_have_the_limits() -> None:
    """The paper's families take them, the default ones their own."""
    paper, default = chosen_methods(["paper", "default"], KNOWN)
    made = paper.build(0.5, 0.25, 1e-2, 7)
    assert (made.words, made.tags, made.affix, made.norm, made.families) == (1, 2, 3, "l1", "paper")
    assert (made.complexity_strength, made.base_strength, made.tol, made.max_passes, made.n_jobs) == (
        0.5, 0.25, 1e-2, 7, 1,
    )  # fmt: skip
    made = default.build(0.0, 0.1, 1e-3, None)
    assert made.words is None
    assert made._form() == VCRF()._form() != VCRF(recipe="paper", base_strength=0.1)._form()


def test_all_known_methods_can_be_chosen() -> None:
    """Their parameters are those of their estimators; constraints wait for the labels of the data."""
    assert [method.name for method in chosen_methods(KNOWN, KNOWN)] == list(KNOWN)
    chosen_methods(["chunks=default constraints=BIO"], KNOWN)


def test_a_new_method_changes_parameters_of_a_known_one() -> None:
    """Values are JSON or words."""
    (method,) = chosen_methods(["mine=paper tags=3 loss=hamming norm=elastic l1_ratio=0.9 complexities=feature"], KNOWN)
    made = method.build(0.0, 0.1, 1e-3, None)
    assert (method.name, made.tags, made.loss, made.norm, made.l1_ratio, made.words, made.complexities) == (
        "mine", 3, "hamming", "elastic", 0.9, 1, "feature",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["papr"], "Unknown method 'papr': expected one of paper"),
        (["mine=paper tag=3"], "no parameter 'tag'"),
        (["mine=paper tol=3"], "no parameter 'tol' to set here"),
        (["mine=paper tags"], "expected KEY=VALUE, got 'tags'"),
        (["paper", "paper"], "given twice"),
        (["mine=paper estimator=Nothing"], "no estimator 'Nothing'"),
        (["mine=paper estimator=Corpus"], "no estimator 'Corpus'"),
        (["mine=paper tags=many"], "Method 'mine': `tags` must be an integer from 1 to 100, got 'many'"),
        (["mine=paper norm=l7"], "Method 'mine': `norm` must be"),
        (["mine=m3n loss=best"], "Method 'mine': `loss` must be"),
        (["mine=paper complexities=none"], "Method 'mine': `complexities` must be"),
        (["mine=default l1_ratio=7"], "Method 'mine': `l1_ratio` must be a number between 0 and 1"),
        (["mine=paper temperature=0"], "Method 'mine': `temperature` must be"),
        ([""], "Unknown method ''"),
        (["=paper tags=1"], "expected one of paper"),
        ([], "no method to run"),
    ],
)
def test_wrong_ones_are_refused(names: list[str], message: str) -> None:
    """The message says what was expected."""
    with pytest.raises(InputError, match=message):
        chosen_methods(names, KNOWN)
