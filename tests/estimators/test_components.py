"""`VCRF(components=...)`: what the model scores, explains and saves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from vcrf import M3N, VCRF, load, vote
from vcrf.errors import InputError

LABELS = ["U=N|C=Nom|#=1", "U=N|C=Acc|#=1", "U=V|#=1", "U=V|#=2", "U=P"]
STEMS = {"N": "rasu", "V": "koti", "P": "en"}
ENDS = {"U=N|C=Nom|#=1": "", "U=N|C=Acc|#=1": "t", "U=V|#=1": "n", "U=V|#=2": "mme", "U=P": ""}


def sentences(n, seed):
    """Words that are a stem and an ending for each bundle."""
    rng = np.random.default_rng(seed)
    y = [[LABELS[i] for i in rng.integers(len(LABELS), size=rng.integers(1, 5))] for _ in range(n)]
    X = [[f"{STEMS[label[2]]}{rng.integers(4)}{ENDS[label]}" for label in labels] for labels in y]
    return X, y


@pytest.fixture(scope="module")
def data():
    """Few sentences."""
    return sentences(25, 1)


@pytest.fixture(scope="module")
def tagger(data):
    """A model with components."""
    return VCRF(components="all", base_strength=0.005, n_jobs=1).fit(*data)


@pytest.fixture(scope="module")
def paired(data):
    """A model with pairs of component values."""
    return VCRF(components="all", component_pairs="U,#", base_strength=0.003, n_jobs=1).fit(*data)


def score(model, tokens, labels):
    """The score of a label sequence, from the features as people see them."""
    from vcrf.families import intern_sentences

    total = 0.0
    features = list(model.features())
    at = np.repeat(np.arange(len(model.keys)), np.diff(model.ptr))
    for t, row, value in model.occurrences(intern_sentences([tokens])):
        for j in np.flatnonzero(at == row).tolist():
            feature = features[j]
            if feature.family.startswith("components:"):
                fires = feature.labels[0] in labels[t].split("|")
            elif feature.family.startswith("component-pairs:"):
                before, here = feature.labels
                fires = t > 0 and before in labels[t - 1].split("|") and here in labels[t].split("|")
            else:
                k = len(feature.labels)
                fires = t >= k - 1 and tuple(labels[t - k + 1 : t + 1]) == feature.labels
            total += value * feature.weight if fires else 0.0
    return total


@pytest.mark.parametrize("with_pairs", [False, True])
def test_probabilities_are_those_of_the_features(tagger, paired, data, with_pairs) -> None:
    """Protects labels, marginals and sums: all label sequences, scored feature by feature."""
    tagger = paired if with_pairs else tagger
    model, tokens = tagger.model_, data[0][0][:3]
    assert any(f.n_active for f in tagger.families_ if f.name.startswith("components:"))
    assert any(f.n_active for f in tagger.families_ if f.name.startswith("component-pairs:")) == with_pairs
    every = list(product(tagger.classes_, repeat=len(tokens)))
    scores = np.array([score(model, tokens, labels) for labels in every])
    p = np.exp(scores - scores.max())
    p /= p.sum()
    (best,) = tagger.predict([tokens])
    assert tuple(best) == every[int(scores.argmax())]
    (found,) = tagger.predict_marginals([tokens])
    for t, of_token in enumerate(found):
        for label in tagger.classes_:
            expected = sum(p[i] for i, labels in enumerate(every) if labels[t] == label)
            assert of_token[label] == pytest.approx(expected, abs=1e-9)


def test_a_model_with_components_is_saved_whole(tagger, data, tmp_path) -> None:
    """Protects the file: the same model comes back, and a newer format version keeps older readers away."""
    tagger.save(tmp_path / "c.vcrf")
    again = load(tmp_path / "c.vcrf")
    assert again.model_.components.names == tagger.model_.components.names
    assert list(again.model_.features()) == list(tagger.model_.features())
    assert again.predict(data[0]) == tagger.predict(data[0])
    assert again.components == "all"


def test_pairs_of_component_values_are_saved_explained_and_begun_with(paired, data, tmp_path) -> None:
    """Protects the file, `explain`, the heaviest features, and a warm start, of models with pairs of values."""
    from vcrf.labelling.explain import explain

    paired.save(tmp_path / "p.vcrf")
    again = load(tmp_path / "p.vcrf")
    assert again.model_.components.pairs == ("U", "#")
    assert list(again.model_.features()) == list(paired.model_.features())
    assert again.predict(data[0]) == paired.predict(data[0])
    shown = [c for sentence in data[0] for word in explain(paired, sentence) for c in word.contributions]
    assert any(c.family.startswith("component-pairs:") for c in shown)
    heaviest = paired.model_.heaviest("U=N|C=Acc|#=1", 60)
    ends = {feature.labels[-1] for feature in heaviest if feature.family.startswith("component-pairs:")}
    assert ends
    assert ends <= {"U=N", "#=1"}
    warm = VCRF(components="all", component_pairs=["#", "U"], base_strength=0.003, n_jobs=1).fit(*data, start=again)
    assert warm.objective_ == pytest.approx(paired.objective_, rel=1e-3)
    assert warm.result_.n_passes < paired.result_.n_passes


def test_pairs_of_values_go_without_features_of_values(data) -> None:
    """Protects `component_pairs` alone, their complexities, and an error on held-out sentences that the model makes."""
    X, y = sentences(10, 2)
    one = VCRF(component_pairs="U", base_strength=0.003, n_jobs=1).fit(*data, X_dev=X, y_dev=y)
    names = [family.name for family in one.families_]
    assert "component-pairs:U" in names
    assert not any(name.startswith("components:") for name in names)
    r = {family.name: family.complexity for family in one.families_}
    assert 0.0 < r["component-pairs:U"] < r["tags:2"]
    wrong = np.mean([a != b for s, t in zip(y, one.predict(X), strict=True) for a, b in zip(s, t, strict=True)])
    assert one.history_[-1].dev_error == pytest.approx(wrong)


def test_contributions_name_component_values(tagger, data) -> None:
    """Protects `explain` and the heaviest features."""
    from vcrf.labelling.explain import explain

    shown = explain(tagger, data[0][0])
    assert "C=" in str(shown) or "U=" in str(shown)
    heaviest = tagger.model_.heaviest("U=N|C=Acc|#=1", 20)
    own = {feature.labels[0] for feature in heaviest if feature.family.startswith("components:")}
    assert own <= {"U=N", "C=Acc", "#=1"}
    assert own


def test_chosen_components_alone_have_features(data) -> None:
    """Protects names of components, given as text or as a list, and that complexities count component values."""
    one = VCRF(components="C", base_strength=0.05, n_jobs=1).fit(*data)
    assert one.model_.components.names == ["C=Acc", "C=Nom"]
    assert VCRF(components=["C"], base_strength=0.05, n_jobs=1).fit(*data).objective_ == one.objective_
    r = {family.name: family.complexity for family in one.families_}
    assert all(r[name] < r[name.removeprefix("components:")] for name in r if name.startswith("components:"))


def test_characters_of_positional_tags_are_components() -> None:
    """Protects `components="positions"`: one value for each place and character, none for `-`."""
    tagger = VCRF(components="positions", base_strength=0.05).fit([["a", "b", "c"]], [["NNs", "NV-", "V--"]])
    table = tagger.model_.components
    assert table.names == ["1=N", "1=V", "2=N", "2=V", "3=s"]
    assert [tagger.classes_[i] for i in table.labels[table.ptr[0] : table.ptr[1]]] == ["NNs", "NV-"]


def test_a_start_and_a_vote_take_components(tagger, data) -> None:
    """Protects a warm start, which ends at the same optimum, and votes, whose weights are of labels."""
    again = VCRF(components="all", base_strength=0.005, n_jobs=1).fit(*data, start=tagger)
    assert again.objective_ == pytest.approx(tagger.objective_, rel=1e-3)
    assert again.result_.n_passes < tagger.result_.n_passes
    assert vote([tagger, tagger]).predict(data[0]) == tagger.predict(data[0])


def test_development_errors_are_those_of_the_model(data) -> None:
    """Protects the error that training reports: the model that is returned makes it."""
    X, y = sentences(10, 2)
    fitted = VCRF(components="all", base_strength=0.02, n_jobs=1).fit(*data, X_dev=X, y_dev=y)
    wrong = np.mean([a != b for s, t in zip(y, fitted.predict(X), strict=True) for a, b in zip(s, t, strict=True)])
    assert fitted.history_[-1].dev_error == pytest.approx(wrong)


@pytest.mark.parametrize(
    ("estimator", "y", "message"),
    [
        (VCRF(components="all"), [["U=N", "noun"]], "'noun'"),
        (VCRF(components="Case"), [["U=N", "U=V"]], "'Case'.*There are: U"),
        (VCRF(components="positions"), [["NN-", "NN"]], "'NN-' has 3 characters"),
        (VCRF(components=3), [["U=N", "U=V"]], "components"),
        (VCRF(components="all", norm="group"), [["U=N", "U=V"]], "group"),
        (VCRF(components="all", complexities="rademacher"), [["U=N", "U=V"]], "rademacher"),
        (M3N(components="all"), [["U=N", "U=V"]], "m3n"),
        (VCRF(component_pairs="Case"), [["U=N", "U=V"]], "'Case'"),
        (VCRF(components="U", component_pairs="C"), [["U=N|C=x", "U=V"]], "component_pairs.*'C'.*There are: U"),
        (VCRF(component_pairs="U", tags=3), [["U=N", "U=V"]], "two labels at the most"),
        (VCRF(component_pairs="U", inference="patterns"), [["U=N", "U=V"]], "component_pairs"),
        (VCRF(component_pairs="U", recipe="paper", solver="sgd"), [["U=N", "U=V"]], "sgd"),
    ],
)
def test_what_cannot_have_components_is_refused(estimator, y, message: str) -> None:
    """Protects messages that say what is wrong, a label that cannot be split by its name."""
    with pytest.raises(InputError, match=message):
        estimator.fit([["a", "b"]], y)
