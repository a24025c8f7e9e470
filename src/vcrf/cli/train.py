"""`vcrf train`: learn a model from labelled files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import vcrf
from vcrf.arguments.parameters import ESTIMATOR
from vcrf.cli.errors import saying_warnings
from vcrf.cli.help import HelpAll
from vcrf.cli.interrupts import Interrupts, exit_code
from vcrf.cli.late import import_late
from vcrf.cli.options import AsJson, Form, Format, Split, Tag, column, format_name, option
from vcrf.cli.output import print_json, print_rich, say
from vcrf.cli.training import dev_report, page, print_report, save_model, training_report, watched

if TYPE_CHECKING:
    from vcrf import VCRF, Corpus
    from vcrf.data.layout import Layout
    from vcrf.tuning import TuneResult
    from vcrf.web.watching import LiveTraining


# What a corpus has of each sentence.
_FIELDS = ("tokens", "labels", "sources")
# Surrogates by name, and the estimators that minimise them.
_ESTIMATORS = {
    "crf": "VCRF",
    "structboost": "VStructBoost",
    "exponential": "VExponential",
    "m3n": "M3N",
    "structsvm": "StructSVM",
    "crf-max": "MaxCRF",
    "structboost-max": "MaxStructBoost",
    "exponential-max": "MaxExponential",
}


def train(
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA", help="Labelled files: CoNLL-U or columns, plain, .gz, .bz2, .xz; `-`: stdin."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Where to write the model.")],
    split: Split = None,
    dev: Annotated[
        Path | None, typer.Option(metavar="DATA", help="Labelled file to measure the error on, never trained on.")
    ] = None,
    dev_split: Annotated[str | None, option("dev_split")] = None,
    patience: Annotated[int | None, option("patience")] = None,
    tag: Tag = None,
    form: Form = None,
    partial: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE=COLUMNS",
            help="A labelled file that has some of the columns of --tag alone, as b.conllu=upos; what it does not say "
            "stays open. May be repeated.",
        ),
    ] = None,
    input_format: Format = "auto",
    recipe: Annotated[str, option("recipe")] = "accurate",
    families: Annotated[str, option("families")] = "default",
    words: Annotated[int | None, option("words")] = None,
    tags: Annotated[int | None, option("tags")] = None,
    affix: Annotated[int | None, option("affix")] = None,
    word_classes: Annotated[Path | None, option("word_classes")] = None,
    components: Annotated[str | None, option("components")] = None,
    component_pairs: Annotated[str | None, option("component_pairs")] = None,
    known_labels: Annotated[int | None, option("known_labels", min=1)] = None,
    complexity_strength: Annotated[float | None, option("complexity_strength")] = None,
    complexities: Annotated[str, option("complexities")] = "paper",
    base_strength: Annotated[float | None, option("base_strength")] = None,
    norm: Annotated[str | None, option("norm")] = None,
    norms: Annotated[list[str] | None, option("norms")] = None,
    power: Annotated[float | None, option("power")] = None,
    l1_ratio: Annotated[float | None, option("l1_ratio")] = None,
    count_power: Annotated[float | None, option("count_power")] = None,
    factors: Annotated[bool | None, option("factors")] = None,
    loss: Annotated[str | None, option("loss")] = None,
    surrogate: Annotated[str, option("surrogate")] = "crf",
    structure: Annotated[str, option("structure")] = "chain",
    constraints: Annotated[str | None, option("constraints")] = None,
    tol: Annotated[float | None, option("tol")] = None,
    max_passes: Annotated[int | None, option("max_passes")] = None,
    inference: Annotated[str, option("inference")] = "auto",
    dual_start: Annotated[bool, option("dual_start")] = True,
    memory: Annotated[str | None, option("memory")] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Train on the workers of a Dask scheduler, tcp://host:8786, which read the files."
        ),
    ] = None,
    solver: Annotated[str, option("solver")] = "certified",
    rule: Annotated[str, option("rule")] = "fobos",
    eta: Annotated[float, option("eta")] = 0.01,
    eta_decay: Annotated[float, option("eta_decay")] = 0.0,
    kappa: Annotated[str, option("kappa")] = "1",
    radius: Annotated[float | None, option("radius")] = None,
    logarithm: Annotated[bool, option("logarithm")] = True,
    n_jobs: Annotated[int | None, option("n_jobs", min=1)] = None,
    random_state: Annotated[int | None, option("random_state", min=0)] = None,
    start: Annotated[Path | None, option("start")] = None,
    tune: Annotated[bool, option("tune")] = False,
    folds: Annotated[int | None, option("folds")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Picture of --tune: error and size along the grid (.png, .svg, .pdf)."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the training in a browser while it runs (the extra `web`).")
    ] = False,
    watch_port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port of --watch; 0 is any free one.")
    ] = 8080,
    json: AsJson = False,
    help_all: HelpAll = False,
) -> None:
    """Learn a model from labelled files.

    \b
    vcrf train my.conllu -o my.vcrf
    vcrf train treebank.conllu.gz --split train --dev-split dev --tag xpos -o xpos.vcrf
    vcrf train my.conllu --tune --folds 5 --plot tuning.png -o my.vcrf
    vcrf train my.conllu answers.json --start my.vcrf -o more.vcrf

    Training stops when the certified gap to the optimum is below --tol times the objective. Ctrl-C stops it earlier:
    the best model so far is written.
    """
    given = locals()
    began = time.perf_counter()
    import_late()
    from vcrf.cli.train_checks import check_call, check_complexities, check_loss, check_tuning

    check_call(data, output, split, dev, dev_split, plot, word_classes)
    check_tuning(tune, folds, plot, start)
    check_complexities(complexities, complexity_strength, tune)
    check_loss(loss)
    if start is not None:
        from vcrf.model.file import read_facts

        read_facts(start)  # before any data are
    if watch:
        from vcrf.cli.watching import check_watch

        check_watch()
    from vcrf import scratch
    from vcrf.machine import give_memory_back

    if dask is not None:
        from vcrf.cli.train_cluster import check_cluster, train_on_cluster

        check_cluster(given)
        train_on_cluster(given, began)
        return
    give_memory_back()
    with scratch.within(memory):
        (_train_trees if structure == "tree" else _train_chains)(given, began)


def _train_chains(given: dict[str, Any], began: float) -> None:
    """Train on sentences."""
    output, start = given["output"], given["start"]
    tagger = estimator(given)
    corpus, development, layout = _corpora(given)
    say(f"{len(corpus):,} sentences, {corpus.n_tokens:,} tokens, {len(corpus.label_set)} labels")
    stages: dict[str, float] = {}
    found = None
    with Interrupts() as interrupts, page(given) as live:
        if given["tune"]:
            found = _tune(tagger, corpus, development, given["folds"] or 5, interrupts, stages, live)
        tagger = found.estimator if found else _fit(tagger, corpus, development, interrupts, start, live)
        interrupts.see_model()
        if live is not None:
            live.end(tagger.status_.value)
        if tagger.model_.known is not None:
            say(f"Known labels: {tagger.model_.known.told}.")
        report = training_report(tagger, development, began, stages)
        save_model(tagger, layout, output)
    try:
        if found is not None:
            print_rich(found.table(), err=True)
            report |= {"tuning": [vars(row) for row in found.rows], "best": vars(found.best)}
        if given["json"]:
            print_json({**report, "model": str(output), "seconds": time.perf_counter() - began})
        else:
            print_report(report, output)
        if found is not None and given["plot"] is not None:
            found.plot(given["plot"])  # after the model: a picture that fails costs nothing else
    except KeyboardInterrupt:
        say(f"Interrupted: {output} is written.")
        raise typer.Exit(exit_code()) from None
    if interrupts.is_interrupted:
        say("Interrupted: the model is the best so far.")
        raise typer.Exit(exit_code())


def estimator(given: dict[str, Any]) -> VCRF:
    """The estimator that the options ask for."""
    # An estimator has these parameters under the same names.
    parameters = {parameter.name: given[parameter.name] for parameter in ESTIMATOR if parameter.name in given}
    parameters["loss"] = {None: "auto", "none": None}.get(given["loss"], given["loss"])
    parameters["norms"] = _norms(given["norms"])
    if given["word_classes"] is not None:
        from vcrf.classes import read_classes

        parameters["word_classes"] = read_classes(given["word_classes"])
    tagger: VCRF = getattr(vcrf, _ESTIMATORS[given["surrogate"]])(**parameters)
    return tagger


def _norms(pairs: list[str] | None) -> dict[str, str] | None:
    """The mapping that --norm-of spells, pair by pair."""
    from vcrf.errors import InputError

    out = {}
    for pair in pairs or []:
        family, sign, norm = pair.rpartition("=")
        if not sign:
            raise InputError(f"--norm-of {pair}: expected FAMILY=NORM, like word=l2.")
        out[family] = norm
    return out or None


def _corpora(given: dict[str, Any]) -> tuple[Corpus, Corpus | None, Layout]:
    """The training data, read once where they may be larger than the memory, and the development data."""
    dev, dev_split, input_format = given["dev"], given["dev_split"], format_name(given["input_format"])
    how = column(given["tag"]), given["split"], input_format, given["form"]
    # Labels that are left open are kept as they are read.
    corpus, layout = _read(given["data"], *how, is_streamed=not given["partial"])
    corpus = _with_partial(given, corpus, layout)
    if dev is None and dev_split is None:
        return corpus, None, layout
    # In the columns of the training data.
    with _about_dev_split():
        return corpus, _read([dev] if dev else given["data"], None, dev_split, input_format, None, layout)[0], layout


def _with_partial(given: dict[str, Any], corpus: Corpus, layout: Layout) -> Corpus:
    """The training data and those of --partial, whose labels are open."""
    if not given["partial"]:
        return corpus
    from vcrf.data import Corpus as Whole
    from vcrf.data.partial import read_partial
    from vcrf.errors import InputError

    if given["memory"] is not None or given["tune"]:
        raise InputError("--partial leaves labels open, which --memory and --tune do not know: leave one of them out.")
    parts = [corpus]
    for one in given["partial"]:
        with saying_warnings():
            part, own = read_partial(one, corpus, layout, given["split"])
        n_open = sum(not isinstance(label, str) for labels in part.labels for label in labels)
        say(f"{one}: {len(part):,} sentences; {n_open:,} of {part.n_tokens:,} words may have several labels.")
        if own:
            shown = ", ".join(sorted(own)[:5]) + (", ..." if len(own) > 5 else "")
            say(f"{one}: no other file has a label with {shown}: such words have no other parts.")
        parts.append(part)
    tokens, labels, sources = ([x for part in parts for x in getattr(part, name)] for name in _FIELDS)
    return Whole(tokens, labels, sources)


def _train_trees(given: dict[str, Any], began: float) -> None:
    """Train on the trees of CoNLL-U files."""
    from vcrf.cli.trees import read_many, tree_estimator, with_field

    output, split = given["output"], given["split"]
    tagger, label = tree_estimator(given, column(given["tag"]))
    trees = read_many(given["data"], label, split)
    dev = None
    if given["dev"] is not None or given["dev_split"] is not None:
        dev = read_many([given["dev"]] if given["dev"] else given["data"], label, given["dev_split"])
    n_labels = len({name for labels in trees.labels for name in labels})
    say(f"{len(trees.graphs):,} trees, {sum(map(len, trees.labels)):,} words, {n_labels} labels")
    with Interrupts() as interrupts, page(given) as live:
        with watched(tagger, "training", interrupts, live):
            tagger.fit(trees.graphs, trees.labels)
        interrupts.see_model()
        if live is not None:
            live.end(tagger.status_.value)
        report = training_report(tagger, None, began, {})
        if dev is not None:
            report |= dev_report(dev.labels, tagger.predict(dev.graphs))
        tagger.model_ = with_field(tagger.model_, label)
        tagger.save(output)
    if given["json"]:
        print_json({**report, "model": str(output), "seconds": time.perf_counter() - began})
    else:
        print_report(report, output)
    if interrupts.is_interrupted:
        say("Interrupted: the model is the best so far.")
        raise typer.Exit(exit_code())


def _read(paths: list[Path], *how: Any, is_streamed: bool = False) -> tuple[Corpus, Layout]:
    from vcrf.data.readers import read_corpora

    with saying_warnings():
        return read_corpora(paths, *how, is_streamed=is_streamed)


@contextmanager
def _about_dev_split() -> Iterator[None]:
    """The split of development data has an option of its own."""
    from vcrf.errors import InputError

    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace("`split", "`dev_split")) from error


def _fit(
    tagger: VCRF, corpus: Corpus, development: Corpus | None, interrupts: Interrupts, start: Path | None,
    live: LiveTraining | None,
) -> VCRF:  # fmt: skip
    old = None if start is None else vcrf.load(start)
    with watched(tagger, "training", interrupts, live):
        return tagger.fit(corpus.tokens, corpus.labels, None, *_columns(development), start=old)


def _tune(
    tagger: VCRF,
    corpus: Corpus,
    development: Corpus | None,
    folds: int,
    interrupts: Interrupts,
    stages: dict[str, float],
    live: LiveTraining | None,
) -> TuneResult:
    """Choose the strengths; one that is given stays. `stages` gets the time at which each stage began."""

    def grid(strength: float | None) -> list[float] | None:
        return None if strength is None else [strength]

    with watched(tagger, "tuning", interrupts, live) as progress:

        def begin(stage: str) -> None:
            stages[stage] = time.perf_counter()
            progress.begin(stage)
            if live is not None:
                live.title = stage
            if stage == "training":
                interrupts.see_training()

        return tagger.tune(
            corpus.tokens,
            corpus.labels,
            *_columns(development),
            folds=folds,
            complexity_strengths=grid(tagger.complexity_strength),
            base_strengths=grid(tagger.base_strength),
            random_state=tagger.random_state or 0,
            on_stage=begin,
        )


def _columns(corpus: Corpus | None) -> tuple[Any, Any]:
    return (None, None) if corpus is None else (corpus.tokens, corpus.labels)
