"""`vcrf suggest`: which sentences to label next."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from vcrf.cli.options import Form, ModelFile, column, option
from vcrf.cli.output import say
from vcrf.cli.tag import InputFormat

if TYPE_CHECKING:
    from vcrf.data.annotations import Task
    from vcrf.data.layout import Layout
    from vcrf.data.raw import RawFile
    from vcrf.labelling.tagger import ModelTagger


class Target(StrEnum):
    """Formats for people and tools that label."""

    CONLLU = "conllu"
    LABEL_STUDIO = "label-studio"
    PRODIGY = "prodigy"
    JSONL = "jsonl"


def suggest(
    model: ModelFile,
    pool: Annotated[
        Path, typer.Argument(metavar="POOL", help="Sentences without labels: text, CoNLL-U or columns; `-` is stdin.")
    ],
    number: Annotated[int, typer.Option("--number", "-n", metavar="N", min=1, help="How many sentences.")] = 100,
    by: Annotated[str, option("by")] = "least-confidence",
    per: Annotated[str, option("per")] = "sentence",
    diversity: Annotated[float, option("diversity")] = 0.0,
    to: Annotated[Target, typer.Option(help="Output.")] = Target.CONLLU,
    input_format: Annotated[InputFormat, typer.Option(help="Format of the pool.")] = InputFormat.AUTO,
    form: Form = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, whole or not at all.")
    ] = None,
) -> None:
    """Choose the sentences of a pool that are worth labelling next, with the model's labels to correct.

    \b
    vcrf suggest my.vcrf pool.txt -n 100 > next.conllu
    vcrf suggest my.vcrf pool.conllu --by entropy --per token --to label-studio -o tasks.json
    vcrf train old.conllu answers.json -o new.vcrf

    The labels are guesses: `vcrf train` takes those that a person has answered. In CoNLL-U that is the comment
    `# answer = accept` in place of none, in lines of JSON "answer": "accept". What Label Studio, Prodigy and doccano
    export can be trained on: files that end in .json or .jsonl.
    """
    from vcrf.cli.checks import check_not_of_trees, check_output
    from vcrf.cli.compiling import compile_notice, load_numba_without_scipy
    from vcrf.data.raw import open_raw
    from vcrf.errors import InputError
    from vcrf.files import replacing_text
    from vcrf.labelling.labelling import check_labels_text
    from vcrf.labelling.loading import load_tagger

    if output is not None:
        check_output("--output", output, {model: "the model", pool: "the pool"})
    if input_format is InputFormat.ATTRIBUTES:
        raise InputError("--input-format attributes is for `vcrf tag`: a pool is text, columns or CoNLL-U.")
    check_not_of_trees("suggest", model)
    tagger = load_tagger(model)
    check_labels_text(tagger.model_, str(model))
    facts = tagger.model_.facts
    file = open_raw(pool, cast(Any, input_format.value), column(None), form, facts.layout if facts else None)
    load_numba_without_scipy()
    with compile_notice():
        tasks = _tasks(tagger, file, number, by, per, diversity)
    text = _written(tasks, to, tagger, file.conllu)
    if output is None:
        sys.stdout.buffer.write(text.encode())
    else:
        with replacing_text(output) as out:
            out.write(text.encode())
    say(f"{len(tasks):,} sentences, {sum(len(task.tokens) for task in tasks):,} tokens, by {by} a {per}")


def _tasks(tagger: ModelTagger, file: RawFile, number: int, by: str, per: str, diversity: float) -> list[Task]:
    from vcrf.data.annotations import Task
    from vcrf.errors import InputError
    from vcrf.labelling.labelling import located

    sentences = [sentence for block in file.blocks for sentence in block if sentence.tokens]
    places = [f"{file.name}:{sentence.first_line}" for sentence in sentences]
    if not sentences:
        raise InputError(f"{file.name}: no sentences to choose from. Expected text, CoNLL-U or columns.")
    try:
        found = tagger.suggest([sentence.tokens for sentence in sentences], number, by, per, diversity)
    except InputError as error:
        raise InputError(located(str(error), places)) from error
    chosen = [sentences[s.number].tokens for s in found]
    values = tagger.sequence_probability(chosen, [s.labels for s in found])
    return [
        Task(tokens, [str(label) for label in s.labels], s.usefulness, float(value), places[s.number])
        for s, tokens, value in zip(found, chosen, values, strict=True)
    ]


def _written(tasks: list[Task], to: Target, tagger: ModelTagger, layout: Layout) -> str:
    from vcrf.data.annotations import json_lines, label_studio, prodigy

    scheme = _scheme([str(label) for label in tagger.model_.labels])
    if to is Target.LABEL_STUDIO:
        return label_studio(tasks, scheme)
    if to is Target.PRODIGY:
        return prodigy(tasks, scheme)
    return json_lines(tasks) if to is Target.JSONL else "".join(_conllu(task, layout) for task in tasks)


def _scheme(labels: list[str]) -> str:
    """How tools are told to mark: spans need a name each, and BIOES is written with letters of its own."""
    from vcrf.decoding.schemes import OUTSIDE, scheme_of

    if any(not label.partition("-")[2] for label in labels if label != OUTSIDE):
        return ""
    scheme = scheme_of(labels)
    return "BIOES" if scheme == "BILOU" and any(label[0] in "ES" for label in labels) else scheme


def _conllu(task: Task, layout: Layout) -> str:
    from vcrf.data.answers import OPEN
    from vcrf.data.raw import RawSentence
    from vcrf.data.writers import Tagging, write_conllu

    head = f"# source = {task.source}\n# usefulness = {task.usefulness:.6g}\n# answer = {OPEN}\n"
    return head + write_conllu(RawSentence(1, ["\n"], [], list(task.tokens)), [Tagging(list(task.labels))], layout)
