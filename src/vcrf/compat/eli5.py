"""eli5 with `CRF` registered: `from vcrf.compat import eli5` in the place of `import eli5`.

Everything that eli5 has is here too. sklearn_crfsuite need not be installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import eli5 as _eli5
import numpy as np
from eli5.base import Explanation, FeatureWeight, FeatureWeights, TargetExplanation, TransitionFeatureWeights

from vcrf.compat.crf import CRF
from vcrf.errors import InputError
from vcrf.types import Label

Top = int | tuple[int | None, int | None] | None


def __getattr__(name: str) -> Any:
    return getattr(_eli5, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_eli5)})


@_eli5.explain_weights.register(CRF)  # type: ignore[untyped-decorator]
def explain_weights_crf(
    crf: CRF,
    top: Top = 20,
    target_names: Sequence[str] | Mapping[Label, str] | None = None,
    targets: Sequence[Label] | None = None,
    feature_re: str | None = None,
    feature_filter: Callable[[str], bool] | None = None,
) -> Any:
    """Weights of attributes by label, and those of pairs of labels, as eli5 shows them.

    Parameters
    ----------
    crf : fitted
    top : the heaviest attributes of a label: how many, or how many for it and how many against it; None is all
    target_names : names to show, in the order of `classes_` or by label
    targets : the labels to show, by either name, in this order; by default "O" and the like, then by entity
    feature_re, feature_filter : which attributes: a pattern to be found in them, or a function
    """
    crf._model()
    shown = _shown_names(crf.classes_, target_names)
    labels = _by_entity(crf.classes_) if targets is None else [_label(shown, target) for target in targets]
    state: dict[Label, list[tuple[str, float]]] = {label: [] for label in labels}
    for (attribute, label), weight in (crf.state_features_ or {}).items():
        is_wanted = feature_re is None or re.search(feature_re, attribute) is not None
        if label in state and is_wanted and (feature_filter is None or feature_filter(attribute)):
            state[label].append((attribute, weight))
    transitions = crf.transition_features_ or {}
    return Explanation(
        estimator=repr(crf),
        method="CRF",
        targets=[TargetExplanation(shown[label], feature_weights=_heaviest(state[label], top)) for label in labels],
        transition_features=TransitionFeatureWeights(
            class_names=[shown[label] for label in labels],
            coef=np.array([[transitions.get((a, b), 0.0) for b in labels] for a in labels]),
        ),
    )


def _heaviest(weights: list[tuple[str, float]], top: Top) -> Any:
    """The heaviest attributes for a label and against it, and how many are left."""
    ordered = sorted(weights, key=lambda each: -abs(each[1]))
    n_for, n_against = top if isinstance(top, (tuple, list)) else (None, None)
    listed = ordered if isinstance(top, (tuple, list)) else ordered[:top]
    found = [FeatureWeight(attribute, weight) for attribute, weight in listed]
    pos, neg = [f for f in found if f.weight > 0][:n_for], [f for f in found if f.weight < 0][:n_against]
    n_positive = sum(weight > 0 for _, weight in weights)
    return FeatureWeights(pos, neg, n_positive - len(pos), len(weights) - n_positive - len(neg))


def _shown_names(labels: list[Label], names: Sequence[str] | Mapping[Label, str] | None) -> dict[Label, Any]:
    if names is None or isinstance(names, Mapping):
        return {label: (names or {}).get(label, label) for label in labels}
    if len(names) != len(labels):
        raise InputError(f"target_names needs one name a label: expected {len(labels)}, got {len(names)}.")
    return dict(zip(labels, names, strict=True))


def _label(shown: dict[Label, Any], target: Any) -> Label:
    """The label of a target, which is a label or the name that it is shown by."""
    found = target if target in shown else next((label for label, name in shown.items() if name == target), None)
    if found is None:
        raise InputError(f"targets: expected labels of the model ({', '.join(map(str, shown))}), got {target!r}.")
    return found


def _by_entity(labels: list[Label]) -> list[Label]:
    """Labels without a prefix first, then those of an entity together.

    >>> _by_entity(["B-ORG", "B-PER", "O", "I-PER", "I-ORG"])
    ['O', 'B-ORG', 'I-ORG', 'B-PER', 'I-PER']
    """

    def place(label: Label) -> tuple[str, str]:
        text = str(label)
        return (text[2:], text) if len(text) > 2 and text[1] == "-" else ("", text)

    return sorted(labels, key=place)
