"""`vcrf eval`: the error of a model, or of two."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from vcrf.cli.errors import about
from vcrf.cli.options import AsJson, Form, Format, Split, Tag, column, format_name, option
from vcrf.cli.output import print_json, print_rich, print_table, say

if TYPE_CHECKING:
    from vcrf.data import Corpus
    from vcrf.labelling.tagger import ModelTagger
    from vcrf.metrics import Comparison, EntityIntervals, EntityScore, EntityScores, ErrorRate, Evaluation, Morphology
    from vcrf.model import Model
    from vcrf.types import Label


class _Evaluated(NamedTuple):
    """One model on the data."""

    name: str
    predicted: list[list[str]]
    true: list[list[str]]
    found: Evaluation
    n_unknown: int
    tokens_per_second: float
    spans: tuple[EntityScores, EntityIntervals] | None
    morphology: Morphology | None = None
    excluded: tuple[int, int] | None = (
        None  # tokens whose true label the known labels forbid; tokens that they restrict
    )


def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL [MODEL] DATA", help="One model file, or two to compare, and a labelled file."),
    ],
    split: Split = None,
    tag: Tag = None,
    form: Form = None,
    input_format: Format = "auto",
    constraints: Annotated[str | None, option("constraints")] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with rates, confusions and the sentences with errors too."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Measure the error of a model on labelled data; with two models, whether they differ.

    \b
    vcrf eval my.vcrf test.conllu
    vcrf eval my.vcrf treebank.conllu.gz --split test --json
    vcrf eval old.vcrf new.vcrf test.conllu
    vcrf eval my.vcrf test.conllu --html report.html

    Intervals are for 95 %; that of the token error knows that tokens come in sentences. Unknown words are those that
    the training data did not have. Two models are compared by a permutation test over sentences. Labels that are
    bundles (--tag upos+feats) are also compared part by part, as in the shared task of CoNLL 2018.
    """
    from vcrf.errors import InputError

    *models, data = files
    if len(models) not in (1, 2):
        raise InputError(f"eval takes one model, or two, and a labelled file: got {len(files)} files.")
    if html is not None:
        _check_html(html, models, data)
    runs = [_run(model, data, split, column(tag), form, format_name(input_format), constraints) for model in models]
    if html is not None:
        how = {"tag": column(tag), "split": split, "format": format_name(input_format), "form": form}
        _write_page(html, models[0], data, how, constraints)
    if len(runs) == 1:
        if json:
            print_json(_as_json(runs[0]))
        else:
            _print_run(runs[0])
        return
    comparison = _compare(*runs)
    if json:
        print_json({"models": [_as_json(run) for run in runs], "comparison": vars(comparison)})
        return
    for run in runs:
        _print_run(run)
    _print_comparison(comparison)


def _check_html(html: Path, models: list[Path], data: Path) -> None:
    from vcrf.cli.checks import check_output
    from vcrf.cli.trees import is_tree_model
    from vcrf.errors import InputError

    check_output("--html", html, {**dict.fromkeys(models, "a model"), data: "the data"})
    if len(models) > 1 or is_tree_model(models[0]):
        raise InputError("--html shows one model of sentences: leave it out, or evaluate the models one by one.")


def _write_page(html: Path, model: Path, data: Path, how: dict[str, Any], constraints: str | None) -> None:
    from vcrf.cli.labelled import read_data
    from vcrf.labelling.loading import load_tagger
    from vcrf.web.reporting import report_page

    tagger = load_tagger(model, constraints)
    facts = tagger.model_.facts
    corpus, _ = read_data(data, **how, trained=facts.layout if facts else None)
    report_page(tagger, model.stem, corpus, data.name).save(html)
    say(f"{html}: written")


def _run(
    model: Path, data: Path, split: str | None, tag: str | int | None, form: int | None, data_format: str | None,
    constraints: str | None,
) -> _Evaluated:  # fmt: skip
    from vcrf.arguments.inputs import check_labels
    from vcrf.cli.compiling import compile_notice
    from vcrf.cli.labelled import in_sources, read_data
    from vcrf.cli.trees import is_tree_model
    from vcrf.labelling.labelling import check_labels_text
    from vcrf.labelling.loading import load_tagger
    from vcrf.metrics import evaluate as measure

    if is_tree_model(model):
        return _run_trees(model, data, split, constraints)
    tagger = load_tagger(model, constraints)
    trained = tagger.model_
    check_labels_text(trained, str(model))
    layout = trained.facts.layout if trained.facts else None
    corpus, _ = read_data(data, tag, split, data_format, form, layout)
    with in_sources(corpus):
        check_labels([list(labels) for labels in corpus.labels], may_be_open=False)
    if not {str(label) for label in tagger.classes_}.intersection(corpus.label_set):
        say(f"{model} and {data} have no label in common: is the label in another column? Pass it with --tag.")
    _tell_seen(trained, corpus, model, split)
    with compile_notice():
        _predict(tagger, corpus[:1], data)  # kernels are loaded: what follows measures tagging
    began = time.perf_counter()
    labels = _predict(tagger, corpus, data)
    seconds = time.perf_counter() - began
    predicted = [[str(label) for label in sentence] for sentence in labels]  # a file's labels are text
    words = {word for sentence in corpus.tokens for word in sentence}
    known = trained.known_words(words) if len(trained.vocabulary) else words
    found = measure(corpus.labels, predicted, corpus.tokens, known)
    n_unknown = sum(word not in known for sentence in corpus.tokens for word in sentence)
    rate = corpus.n_tokens / max(seconds, 1e-9)
    spans = _spans(corpus.labels, predicted, trained.labels)
    parts = _morphology(corpus.labels, predicted, trained.labels)
    excluded = _excluded(trained, corpus)
    return _Evaluated(str(model), predicted, corpus.labels, found, n_unknown, rate, spans, parts, excluded)


def _excluded(trained: Model, corpus: Corpus) -> tuple[int, int] | None:
    """Tokens whose true label is none that the model leaves to their word, and tokens that it restricts."""
    from vcrf.arguments.inputs import read_text

    if trained.known is None:
        return None
    masks = trained.known.masks(read_text(list(corpus.tokens)))
    number = {str(label): i for i, label in enumerate(trained.labels)}
    true = [number.get(str(label), -1) for sentence in corpus.labels for label in sentence]
    restricted = [i for i, mask in enumerate(masks) if not mask.all()]
    return sum(true[i] < 0 or not masks[i, true[i]] for i in restricted), len(restricted)


def _tell_seen(trained: Model, corpus: Corpus, model: Path, split: str | None) -> None:
    """An error on sentences of the training says little, and a file with all parts in it is easily given whole."""
    from vcrf.labelling.seen import seen_in_training

    if told := seen_in_training(trained, list(corpus.tokens)):
        advice = "Evaluate others: --split NAME chooses a part of a file." if split is None else "Evaluate others."
        say(f"{model}: {told} {advice}")


def _run_trees(model: Path, data: Path, split: str | None, constraints: str | None) -> _Evaluated:
    """A model of trees on trees."""
    from vcrf.cli.compiling import compile_notice
    from vcrf.cli.trees import load_trees
    from vcrf.errors import InputError
    from vcrf.graphs.trees import read_trees
    from vcrf.metrics import evaluate as measure

    if constraints is not None:
        raise InputError("--constraints are for sequences of labels, and this is a model of trees: leave them out.")
    tagger, label = load_trees(model)
    trees = read_trees(data, label, split)
    with compile_notice():
        tagger.predict(trees.graphs[:1])
    began = time.perf_counter()
    predicted = [[str(name) for name in labels] for labels in tagger.predict(trees.graphs)]
    seconds = time.perf_counter() - began
    found = measure(trees.labels, predicted)
    rate = sum(map(len, trees.labels)) / max(seconds, 1e-9)
    return _Evaluated(str(model), predicted, trees.labels, found, 0, rate, None)


def _spans(
    true: list[list[str]], predicted: list[list[str]], labels: list[Label]
) -> tuple[EntityScores, EntityIntervals] | None:  # fmt: skip
    """Entities, where the labels of the model and of the data mark them."""
    from vcrf.decoding.schemes import scheme_of
    from vcrf.metrics import entity_intervals, entity_scores

    if not scheme_of([*labels, *(label for sentence in true for label in sentence)]):
        return None
    return entity_scores(true, predicted), entity_intervals(true, predicted)


def _morphology(true: list[list[str]], predicted: list[list[str]], labels: list[Label]) -> Morphology | None:
    """Columns and features, where the labels of the model and of the data are bundles."""
    from vcrf.data.bundles import is_bundle
    from vcrf.metrics import morphology

    if not all(is_bundle(str(label)) for label in {*labels, *(label for sentence in true for label in sentence)}):
        return None
    return morphology(true, predicted)


def _predict(tagger: ModelTagger, corpus: Corpus, data: Path) -> list[list[Label]]:
    from vcrf.errors import InputError
    from vcrf.labelling.labelling import located

    with about(data):
        try:
            return tagger.predict(corpus.tokens)
        except InputError as error:
            raise InputError(located(str(error), corpus.sources)) from error


def _compare(a: _Evaluated, b: _Evaluated) -> Comparison:
    from vcrf.metrics import compare

    return compare(a.true, a.predicted, b.predicted)


def _as_json(run: _Evaluated) -> dict[str, Any]:
    found = run.found
    unknown = found.unknown_word_error
    return {
        "model": run.name,
        "token_error": found.token_error.rate,
        "token_error_interval": _interval(found.token_error),
        "sentence_error": found.sentence_error.rate,
        "sentence_error_interval": _interval(found.sentence_error),
        "unknown_word_error": unknown.rate if unknown else None,
        "unknown_word_error_interval": _interval(unknown) if unknown else None,
        "tokens": found.token_error.n,
        "sentences": found.sentence_error.n,
        "unknown_words": run.n_unknown,
        "tokens_per_second": run.tokens_per_second,
        "confusions": [confusion._asdict() for confusion in found.confusions],
        "entities": None if run.spans is None else _spans_json(*run.spans),
        **(
            {}
            if run.excluded is None
            else {"known_labels": dict(zip(("excluded", "restricted"), run.excluded, strict=True))}
        ),
    } | ({} if run.morphology is None else {"morphology": _morphology_json(run.morphology)})


def _morphology_json(found: Morphology) -> dict[str, Any]:
    return {
        **{name: share.rate for name, share in found.columns.items()},
        "features": {name: {**share._asdict(), "accuracy": share.rate} for name, share in found.features.items()},
    }


def _spans_json(scores: EntityScores, intervals: EntityIntervals) -> dict[str, Any]:
    def numbers(score: EntityScore) -> dict[str, Any]:
        return {"precision": score.precision, "recall": score.recall, "f1": score.f1, **vars(score)}

    kinds = {kind: numbers(score) for kind, score in scores.by_kind.items()}
    return {**numbers(scores.overall), "intervals": intervals._asdict(), "by_kind": kinds}


def _interval(rate: ErrorRate) -> list[float]:
    return [rate.low, rate.high]


def _print_run(run: _Evaluated) -> None:
    found = run.found
    rates = [("tokens", found.token_error), ("sentences", found.sentence_error)]
    if found.unknown_word_error is not None:
        rates.append(("unknown words", found.unknown_word_error))
    rows = [(what, f"{r.rate:.2%}", f"{r.low:.2%} to {r.high:.2%}", f"{r.n_wrong:,}", f"{r.n:,}") for what, r in rates]
    print_table(run.name, ["", "error", "95 % interval", "wrong", "of"], rows)
    if run.excluded is not None:
        print_rich(
            f"Known labels: {run.excluded[1]:,} tokens may have some labels alone; the true one is not among them at "
            f"{run.excluded[0]:,}."
        )
    if run.spans is not None:
        _print_spans(*run.spans)
    if run.morphology is not None:
        _print_morphology(run.morphology)
    if found.confusions:
        mistakes = [(str(c.true), str(c.predicted), c.n, f"{c.share:.1%}") for c in found.confusions]
        print_table("most frequent mistakes", ["true", "labelled", "times", "share"], mistakes, left=2)
    print_rich(f"{run.tokens_per_second:,.0f} tokens a second")


def _print_spans(scores: EntityScores, intervals: EntityIntervals) -> None:
    """Precision, recall and F1 of the entities; the intervals are for all kinds together."""
    rows = [
        (kind, f"{s.precision:.2%}", f"{s.recall:.2%}", f"{s.f1:.2%}", s.n_true, s.n_predicted, s.n_correct)
        for kind, s in [*scores.by_kind.items(), ("all", scores.overall)]
    ]
    print_table("entities", ["kind", "precision", "recall", "F1", "true", "found", "right"], rows)
    said = [f"{name} {low:.2%} to {high:.2%}" for name, (low, high) in intervals._asdict().items()]
    print_rich(f"95 % intervals: {', '.join(said)}")


def _print_morphology(found: Morphology) -> None:
    rows = [
        (name, f"{s.rate:.2%}", f"{s.n_right:,}", f"{s.n:,}", f"{s.n_right_there:,}", f"{s.n_there:,}")
        for name, s in [*found.columns.items(), *found.features.items()]
    ]
    print_table("columns and features", ["", "accuracy", "right", "of", "right where given", "of"], rows)


def _print_comparison(c: Comparison) -> None:
    print_rich(
        f"Difference of token errors, first less second: {c.difference:+.2%}, 95 % interval {c.low:+.2%} to "
        f"{c.high:+.2%}; p = {c.p_value:.3g} (permutation of sentences). {c.n_only_a_wrong:,} tokens are wrong in the "
        f"first only, {c.n_only_b_wrong:,} in the second only."
    )
