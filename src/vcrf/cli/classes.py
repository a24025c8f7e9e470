"""`vcrf classes`: learn word classes from raw text."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcrf.cli.errors import about
from vcrf.cli.interrupts import exit_code
from vcrf.cli.options import AsJson, option
from vcrf.cli.output import print_json, say

if TYPE_CHECKING:
    from vcrf.classes import RoundRecord


def classes(
    text: Annotated[
        list[Path],
        typer.Argument(metavar="TEXT", help="Raw text, a sentence a line, blanks between tokens; .gz, .bz2, .xz; `-`."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write word TAB class.")],
    number: Annotated[int, option("number")] = 128,
    min_count: Annotated[int, option("min_count")] = 3,
    json: AsJson = False,
) -> None:
    """Learn word classes from raw text, for `vcrf train --word-classes`.

    \b
    vcrf classes news.txt.gz -o words.classes
    vcrf train my.conllu --word-classes words.classes -o my.vcrf

    Words that stand between the same neighbours come into one class (the exchange algorithm). The text should be
    tokenised as the labelled data are. The same text gives the same classes. Ctrl-C, SIGTERM and SIGHUP end it early:
    the classes so far are written, and the exit code is 130, 143 or 129.
    """
    from vcrf.classes import learn_classes, read_lines, write_classes
    from vcrf.cli.checks import check_output
    from vcrf.cli.compiling import compile_notice

    check_output("--output", output, dict.fromkeys(text, "a file of raw text"))
    began = time.perf_counter()
    sentences = [tokens for path in text for tokens in read_lines(path)]
    say(f"{len(sentences):,} sentences, {sum(map(len, sentences)):,} tokens")
    with compile_notice(), about(", ".join(map(str, text))):
        found = learn_classes(sentences, number, min_count=min_count, callback=_show)
    write_classes(output, found.classes)
    n_classes = len(set(found.classes.values()))
    last = found.history[-1]
    if json:
        print_json({
            "n_words": len(found.classes), "n_classes": n_classes, "n_rounds": last.n_rounds,
            "log_likelihood": last.log_likelihood, "is_interrupted": found.is_interrupted, "classes": str(output),
            "seconds": time.perf_counter() - began,
        })  # fmt: skip
    else:
        say(f"{output}: {len(found.classes):,} words in {n_classes:,} classes; {time.perf_counter() - began:.1f} s")
    if found.is_interrupted:
        say("Interrupted: the classes are those of the last round.")
        raise typer.Exit(exit_code())


def _show(record: RoundRecord) -> None:
    say(f"round {record.n_rounds:3d}  {record.n_moved:,} words moved  {record.log_likelihood:.4f} nats a token")
