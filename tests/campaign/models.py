"""Model files that are damaged or forged: refused when they are read, or all that they are used for works.

A forged file has right checksums and says something else than a training would. What is in use afterwards is an
ordinary estimator: probabilities sum to one, nothing warns, and what is saved again reads the same.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from tests.campaign.part import Part
from typer.testing import CliRunner

from commands import conllu
from hostile import damaged, forged
from vcrf import M3N, VCRF, Graph, GraphCRF, MultiLabelCRF, StructSVM, losses
from vcrf.classes import WordClasses
from vcrf.cli.app import app
from vcrf.compat import CRF
from vcrf.data import Corpus
from vcrf.data.layout import Layout
from vcrf.decoding.constraints import Constraints
from vcrf.errors import BudgetError, InputError
from vcrf.estimators import file as estimator_file
from vcrf.families import BIAS, Family, NamedFeature, Template
from vcrf.labelling.explain import explain
from vcrf.losses import Loss

WORDS = [["the", "cat", "sleeps"], ["a", "dog", "sees", "the", "cat"], ["dogs", "sleep"]]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB", "DET", "NOUN"], ["NOUN", "VERB"]]
SPANS = [["O", "B-X", "I-X"], ["O", "B-X", "O", "O", "B-Y"], ["B-Y", "I-Y"]]
MANY = [["A", "B", "C"], ["A", "B", "C", "D", "E"], ["E", "F"]]
NUMBERS = [[1, 2, 3], [1, 2, 3, 1, 2], [2, 3]]
DICTS = [[{"w": word, "n": len(word) / 4, "e": {"last": word[-1]}} for word in sentence] for sentence in WORDS]
HELD_OUT = [["dogs", "see"], ["cat", "sees"], ["a", "dog"], ["new", "sleeps"]]

GRAPHS = [Graph([{"w": a}, {"w": b, "n": 0.5}, {"w": "z"}], [(0, 1), (1, 2)]) for a, b in ("xx", "xy", "yx")]
GRAPH_LABELS = [["A", "A", "B"], ["A", "B", "B"], ["B", "A", "A"]]
_DRAWN = np.random.default_rng(0).normal(size=(8, 3, 2))
ARRAYS = [Graph(x, [(0, 1), (0, 2)], edge_features=x[1:]) for x in _DRAWN[:3]]
ROWS, COLUMNS = _DRAWN[:, 0], (_DRAWN[:, 1] > 0.0).astype(int)

# What is asked of a model: sentences of the training, words it has not seen, no word at all.
ASKED_WORDS = [["the", "unseen", "cat"], [], ["sleeps"]]
ASKED_GRAPHS = [Graph([{"w": "y"}, {"w": "new"}], [(0, 1)]), Graph([{}], [])]
ASKED_DICTS = [[{"w": "the", "n": 2.5}, {"w": "new", "other": True}, {}], [], [{"n": -1e6}]]

# Share of the cases that also go through the command line: of files that are refused, and of those that work.
_COMMANDS_REFUSED, _COMMANDS_WORKING = 1 / 1000, 1 / 80
_OPERATIONS_A_CASE = 4
# Refusals that need a sentence, or a graph.
_NOT_FOR_THIS = r".*the constraints leave no label sequence|Example 0(:| has) |A block of this graph needs a table"


class State(NamedTuple):
    """Files to attack, and where commands find theirs."""

    contents: list[bytes]
    model: Path
    data: Path
    text: Path


# ------------------------------------------------------------------------------------ the models


def prepare(scratch: Path) -> State:
    """Train the models, and use each of them once, so that no case waits for the compiler."""
    contents = [estimator_file.to_bytes(tagger) for tagger in taggers()]
    state = State(contents, scratch / "model.vcrf", scratch / "data.conllu", scratch / "text.txt")
    state.data.write_text(conllu(Corpus(WORDS, TAGS, [""] * len(WORDS))), encoding="utf-8")
    state.text.write_text("the cat sleeps\ndogs unseen\n", encoding="utf-8")
    for content in contents:
        loaded = estimator_file.from_buffer(content, "model")
        for operation in operations_of(loaded):
            operation(loaded, asked_of(loaded))
    _call_commands(state, contents[0], np.random.default_rng(0), len(COMMANDS))
    return state


def taggers() -> Iterable[Any]:
    """Fitted estimators that differ in what their files hold."""
    word, suffix = Template(((0, "word"),)), Template(((0, "suffix:1"), (-1, "word")), pad=True)
    own = [Family("word", (word, suffix)), Family("pairs", (BIAS,), 2), Family("triples", (BIAS,), 3, 2.0)]
    local = [Family("word", (word,)), Family("word and tags", (word,), 3), Family("pairs", (BIAS,), 2)]
    few = {"recipe": "paper", "max_passes": 3, "norm": "l2", "base_strength": 0.05}
    small = {**few, "words": 0, "affix": 1}
    yield trained(VCRF(**small, tags=1), WORDS, TAGS)
    yield trained(VCRF(**small, tags=2, loss=losses.EditLoss(band=2), random_state=3), WORDS, TAGS)
    yield trained(VCRF(families=own, **few), WORDS, TAGS)
    # Few of the tag patterns of six labels are seen: these models tag on an automaton.
    seen = {"recipe": "paper", "candidates": "observed", "base_strength": 0.01, "norm": "l2", "max_passes": 9}
    yield trained(VCRF(families=own, **seen), WORDS, MANY)
    yield trained(VCRF(families=local, **seen), WORDS, MANY)
    yield trained(VCRF(**small, tags=2, constraints="BIO"), WORDS, SPANS)
    pairs = Constraints("BIO", [("B-X", "B-Y")], ["I-X"], ["B-X"])
    complexities = {"word": 2.0, "pairs": 1.0, "triples": 0.5}
    yield trained(VCRF(families=own, constraints=pairs, complexities=complexities, **few), WORDS, SPANS)
    classes = WordClasses.of({"cat": "00", "dog": "01", "the": "1"})
    yield trained(VCRF(**small, tags=1, word_classes=classes), WORDS, NUMBERS)
    yield trained(VCRF(tags=2, **few), DICTS, TAGS)
    yield trained(CRF(c1=0.05, c2=0.01, max_iterations=5), DICTS, TAGS)
    yield trained(CRF(c2=0.1, max_iterations=5), DICTS, [[label == "DET" for label in labels] for labels in TAGS])
    yield trained(M3N(max_passes=5, words=0, affix=0, tags=2), WORDS, TAGS)
    costs = losses.WeightedHammingLoss({"DET": 2.0}) + 0.5 * losses.ZeroOneLoss()
    yield trained(StructSVM(max_passes=5, words=0, affix=0, tags=1, loss=costs), WORDS, TAGS)
    yield trained(VCRF(**small, tags=1), WORDS, TAGS).calibrate(HELD_OUT, [["NOUN", "VERB"]] * len(HELD_OUT))
    yield trained(GraphCRF(max_passes=9, loss="hamming"), GRAPHS, GRAPH_LABELS)
    yield trained(GraphCRF(max_passes=9, directed=False), ARRAYS, GRAPH_LABELS)
    yield trained(MultiLabelCRF(max_passes=9), ROWS, COLUMNS)
    yield trained(MultiLabelCRF(edges=[(0, 1)], max_passes=9, scale=False), ROWS, COLUMNS)


def trained(estimator: Any, X: list[Any], y: list[Any]) -> Any:
    """Fit; how far the solver came does not matter here. The file says where the data came from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = estimator.fit(X, y)
    if isinstance(X, list) and isinstance(X[0], list) and isinstance(X[0][0], str):
        facts = fitted.model_.facts.with_layout(Layout("conllu", 1, 3, 10))
        object.__setattr__(fitted.model_, "facts", facts)
    return fitted


# ------------------------------------------------------------------------------------ the attack


def attack(state: State, rng: np.random.Generator) -> str:
    """Change one file, read it, and use what was read."""
    content = state.contents[int(rng.integers(len(state.contents)))]
    if rng.random() < 0.2:
        content = damaged(content, state.contents[int(rng.integers(len(state.contents)))], rng)
    else:
        content = forged(content, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A model may be told of labels that it does not have: the warning is about that, not about the file.
        warnings.filterwarnings("ignore", "The constraints name labels that the model does not have")
        end = _attack_library(content, rng)
        if rng.random() < (_COMMANDS_REFUSED if end == "refused" else _COMMANDS_WORKING):
            _call_commands(state, content, rng, 2)
    return end


def _attack_library(content: bytes, rng: np.random.Generator) -> str:
    try:
        loaded = estimator_file.from_buffer(content, "model")
    except InputError as error:
        _check_message(str(error))
        return "refused"
    asked, operations = asked_of(loaded), operations_of(loaded)
    for i in rng.permutation(len(operations))[:_OPERATIONS_A_CASE].tolist():
        try:
            operations[i](loaded, asked)
        except InputError as error:
            # Not known before there is a sentence, or a graph: one of another kind may be what the model is for.
            if not re.match(
                r".*the constraints leave no label sequence|Example 0(:| has) |A block of this graph needs", str(error)
            ):
                raise
            return "works, not for this"
    return "works"


def asked_of(loaded: Any) -> Any:
    """Sentences, graphs or rows of the kind that a model reads."""
    if isinstance(loaded, MultiLabelCRF):
        return sp.csr_matrix(([0.5, -1.0], ([0, 1], [0, 0])), shape=(2, max(loaded.n_features_in_, 1)))
    if isinstance(loaded, GraphCRF):
        return ASKED_GRAPHS if not loaded.model_.scales else ARRAYS
    return ASKED_DICTS if any(isinstance(source, NamedFeature) for source in loaded.model_.sources) else ASKED_WORDS


def _check_message(message: str) -> None:
    """A message can be printed, is not the file itself, and says what to do."""
    message.encode()
    assert len(message) < 1000, message[:1000]
    assert message.startswith("model: "), message
    assert message.endswith(("again.", "with `save`.", "`save` wrote.", "new.vcrf`.", "with this version.")), message


# ------------------------------------------------------------------------------------ what is asked


def _labels(loaded: Any, asked: list[Any]) -> None:
    known = set(loaded.classes_)
    for sentence, labels in zip(asked, loaded.predict(asked), strict=True):
        assert len(labels) == len(sentence)
        assert known.issuperset(labels)


def _marginals(loaded: Any, asked: list[Any]) -> None:
    for sentence, tokens in zip(asked, loaded.predict_marginals(asked), strict=True):
        assert len(tokens) == len(sentence)
        for token in tokens:
            assert all(0.0 <= p <= 1.0 + 1e-9 for p in token.values()), token
            assert abs(math.fsum(token.values()) - 1.0) < 1e-6, token


def _kbest(loaded: Any, asked: list[Any]) -> None:
    for found in loaded.predict_kbest(asked, 3):
        assert found
        assert all(0.0 <= p <= 1.0 for _, p in found), found
        assert len({tuple(labels) for labels, _ in found}) == len(found)


def _least_risk(loaded: Any, asked: list[Any]) -> None:
    for loss in ("hamming", "edit"):
        assert [*map(len, loaded.predict_mbr(asked, loss, k=3))] == [*map(len, asked)]


def _own_risk(loaded: Any, asked: list[Any]) -> None:
    if isinstance(getattr(loaded, "loss", None), Loss):
        try:
            loaded.predict_mbr(asked, loaded.loss, k=3)
        except (InputError, BudgetError):
            return  # a loss of other labels


def _draws(loaded: Any, asked: list[Any]) -> None:
    for sentence, draws in zip(asked, loaded.sample(asked, 2), strict=True):
        assert [*map(len, draws)] == [len(sentence)] * 2


def _scores(loaded: Any, asked: list[Any]) -> None:
    labels = loaded.predict(asked)
    assert loaded.score(asked, labels) == 1.0
    assert all(0.0 <= p <= 1.0 for p in loaded.sequence_probability(asked, labels))


def _explanations(loaded: Any, asked: list[Any]) -> None:
    for found in explain(loaded, asked[0]):
        assert math.isfinite(found.difference)
        assert 0.0 <= found.probability <= 1.0 + 1e-9
        _printed([found.label, found.runner_up, *found.by_family()])


def _features(loaded: Any, _: list[Any]) -> None:
    model = loaded.model_
    for feature in [*islice(model.features(), 5), *model.heaviest(model.labels[-1], 3)]:
        _printed([feature.family, feature.attribute, feature.source.name, *feature.labels])
    assert model.norm in ("l1", "l2", "elastic")


def _saved_again(loaded: Any, asked: list[Any]) -> None:
    once = estimator_file.to_bytes(loaded)
    again = estimator_file.from_buffer(once, "again")
    assert estimator_file.to_bytes(again) == once
    assert again.predict(asked) == loaded.predict(asked)


def _facts(loaded: Any, _: list[Any]) -> None:
    """Fitted attributes, parameters, and what is printed of them."""
    for name in ("families_", "objective_", "gap_", "status_", "n_active_", "history_", "result_"):
        _printed([getattr(loaded, name, None)])
    _printed([loaded, loaded.get_params()])
    if loaded.model_.facts is not None:
        _printed([loaded.model_.facts.layout])


def _printed(values: Iterable[object]) -> None:
    for value in values:
        str(value).encode()


OPERATIONS: list[Callable[[Any, list[Any]], None]] = [
    _labels, _marginals, _kbest, _least_risk, _own_risk, _draws, _scores, _explanations, _features, _saved_again,
    _facts,
]  # fmt: skip


def _promises(loaded: Any, asked: list[Any]) -> None:
    """What a calibration is for; no promise can be kept with so few sentences, and that is said."""
    if loaded.model_.calibration is None:
        return
    chosen = loaded.predict_selective(asked, 0.1)
    assert [*map(len, chosen.accepted)] == [*map(len, asked)]
    try:
        sets = loaded.predict_sets(asked, 0.5).sets
    except InputError as error:
        if "calibrat" not in str(error):
            raise
        return
    assert [*map(len, sets)] == [*map(len, asked)]


OPERATIONS.append(_promises)


def _graph_marginals(loaded: Any, asked: list[Any]) -> None:
    for nodes in loaded.predict_marginals(asked):
        for node in nodes:
            assert abs(math.fsum(node.values()) - 1.0) < 1e-6, node
    directed = not any(loaded.model_.kinds.symmetric)
    for tables in loaded.predict_edge_marginals(asked) if directed else []:
        assert all(abs(table.sum() - 1.0) < 1e-6 for table in tables)


def _graph_labels(loaded: Any, asked: list[Any]) -> None:
    found = loaded.predict(asked)
    assert loaded.score(asked, found) == 1.0
    assert all(isinstance(each.is_proven, bool | np.bool_) for each in loaded.certify(asked))
    assert [*map(len, loaded.sample(asked, 2))] == [2] * len(asked)


def _graph_reasons(loaded: Any, asked: list[Any]) -> None:
    for found in loaded.explain(asked[0]):
        assert 0.0 <= found.probability <= 1.0 + 1e-9


GRAPH_OPERATIONS = [_graph_marginals, _graph_labels, _kbest, _graph_reasons, _features, _saved_again, _facts]


def _rows(loaded: Any, asked: Any) -> None:
    found = loaded.predict(asked)
    assert found.shape == (asked.shape[0], loaded.n_outputs_)
    assert set(np.unique(found)) <= {0, 1}
    probabilities = loaded.predict_proba(asked)
    assert np.all((probabilities >= 0.0) & (probabilities <= 1.0 + 1e-9))


def _rows_saved_again(loaded: Any, asked: Any) -> None:
    once = estimator_file.to_bytes(loaded)
    again = estimator_file.from_buffer(once, "again")
    assert estimator_file.to_bytes(again) == once
    assert np.array_equal(again.predict(asked), loaded.predict(asked))


ROW_OPERATIONS = [_rows, _rows_saved_again, _features, _facts]


def operations_of(loaded: Any) -> list[Callable[[Any, Any], None]]:
    """What can be asked of an estimator."""
    if isinstance(loaded, MultiLabelCRF):
        return ROW_OPERATIONS
    return GRAPH_OPERATIONS if isinstance(loaded, GraphCRF) else OPERATIONS


# ------------------------------------------------------------------------------------ the command line


def _commands(state: State) -> list[list[object]]:
    model, data = state.model, state.data
    return [
        ["show", model],
        ["show", model, "--json", "--top", 2],
        ["eval", model, data],
        ["eval", model, data, "--json"],
        ["explain", model, "the unseen cat"],
        ["explain", model, "the unseen cat", "--json"],
        ["tag", model, state.text, "--marginals"],
        ["tag", model, state.text, "--nbest", 2, "--format", "json"],
        ["tag", model, data, "--mbr", "hamming"],
        ["tag", model, data, "--mbr", "edit", "--format", "tsv"],
    ]


COMMANDS = range(10)


def _call_commands(state: State, content: bytes, rng: np.random.Generator, n: int) -> None:
    """Call some commands on a file: they end well, or with a message."""
    # A new file: the old one may still be mapped.
    state.model.unlink(missing_ok=True)
    state.model.write_bytes(content)
    for i in rng.choice(len(COMMANDS), n, replace=False).tolist():
        command = _commands(state)[i]
        result = CliRunner().invoke(app, [str(word) for word in command])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code in (0, 1, 2), result.stderr
        assert "Traceback" not in result.stderr
        assert result.exit_code == 0 or result.stderr.startswith("vcrf: "), result.stderr


PART = Part(
    name="models",
    about="model files damaged, or forged with right checksums, and what they are used for",
    count=200_000,
    limit=10.0,
    prepare=prepare,
    attack=attack,
)
