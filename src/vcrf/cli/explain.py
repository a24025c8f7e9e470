"""`vcrf explain`: why tokens have their labels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcrf.cli.options import AsJson, ModelFile
from vcrf.cli.output import print_json, print_rich, say

if TYPE_CHECKING:
    from vcrf.labelling.explain import TokenExplanation


def explain(
    model: ModelFile,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="One sentence, blanks between its tokens; or JSON.")],
    top: Annotated[int, typer.Option(metavar="N", min=0, help="Reasons to show of each token.")] = 5,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with labels, reasons and lattice to this file.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the sentence, and why its least sure label was chosen (.svg)."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Say which features decided each label of a sentence.

    \b
    vcrf explain my.vcrf "the cat sleeps ."
    vcrf explain my.vcrf "the cat sleeps ." --html why.html
    vcrf explain my.vcrf "the cat sleeps ." --plot sentence.svg

    For each token the best label sequence is held against the best one with another label there. The difference of
    their scores is the sum over the features that only one of them has. What looks at the same is one reason; what is
    not shown is summed for each of the two labels. --json has every feature with its exact name.

    A model that was trained on feature dicts takes these as JSON: '[{"w": "the"}, {"w": "cat"}]'. For a model of trees
    TEXT is a CoNLL-U file, whose first sentence is explained.
    """
    from vcrf.cli.checks import check_output
    from vcrf.cli.compiling import compile_notice
    from vcrf.cli.trees import explain_tree, is_tree_model
    from vcrf.data.raw import split_tokens
    from vcrf.errors import InputError
    from vcrf.labelling.attributes import reads_attributes
    from vcrf.labelling.explain import explain as explain_tokens
    from vcrf.labelling.labelling import check_reads_words
    from vcrf.labelling.loading import load_tagger

    if html is not None:
        if plot is not None:
            raise InputError("--html and --plot are two ways to show the same: leave one out.")
        check_output("--html", html, {model: "the model"})
    _check_plot(plot, model)
    if is_tree_model(model):
        if html is not None:
            raise InputError("--html shows sentences, and this is a model of trees: leave it out.")
        with compile_notice():
            explained, words = explain_tree(model, Path(text))
        _show(explained, words, top, plot, json)
        return
    _check_is_sentence(text, model)
    tagger = load_tagger(model)
    if reads_attributes(tagger.model_) and text.lstrip().startswith("["):
        tokens = _from_json(text)
    else:
        tokens = split_tokens(_as_utf8(text))
        check_reads_words(tagger.model_, str(model))
    if not tokens:
        raise InputError("TEXT: expected a sentence, got no token. Pass it in quotes, blanks between the tokens.")
    if html is not None:
        check_reads_words(tagger.model_, str(model))
        with compile_notice():
            tagger.render(tokens).save(html)
        say(f"{html}: written")
        return
    with compile_notice():
        explained = explain_tokens(tagger, tokens)
    _show(explained, list(map(str, tokens)), top, plot, json)


def _check_is_sentence(text: str, model: Path) -> None:
    """Refuse the name of a file: a single token with a dot or a directory in it, and such a file is there."""
    from vcrf.errors import InputError

    is_name = len(text.split()) == 1 and any(mark in text.strip(".") for mark in (".", "/", os.sep))
    if is_name and "\0" not in text and Path(text).is_file():
        raise InputError(
            f"{text} is a file, and `vcrf explain` takes one sentence, between quotes: as in "
            f'vcrf explain {model} "$(head -n 1 {text})" for the first line of a text.'
        )


def _check_plot(plot: Path | None, model: Path) -> None:
    """What can be known of the picture before any work is done."""
    if plot is None:
        return
    from vcrf.cli.checks import check_output
    from vcrf.files import check_target
    from vcrf.labelling.drawing import check_is_svg

    check_is_svg(plot)
    check_target(plot)
    check_output("--plot", plot, {model: "the model"})


def _show(explained: list[TokenExplanation], tokens: list[str], top: int, plot: Path | None, json: bool) -> None:
    if plot is not None:  # first: a pipe that stops reading (`| head`) ends the command
        from vcrf.labelling.drawing import draw_sentence

        draw_sentence(explained, plot)
    if json:
        print_json({"tokens": [_as_json(found) for found in explained]})
    else:
        print_explained(explained, tokens, top)


def _from_json(text: str) -> list[Any]:
    """Tokens of given features."""
    import json

    from vcrf.errors import InputError

    try:
        tokens = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"TEXT: expected a JSON list of features of tokens: {error}.") from None
    return list(tokens)


def _as_utf8(text: str) -> str:
    """An argument whose bytes are UTF-8, whatever the terminal's encoding."""
    from vcrf.errors import InputError
    from vcrf.strings import has_surrogate

    if not has_surrogate(text):
        return text
    try:
        return os.fsencode(text).decode("utf-8")
    except UnicodeError:
        raise InputError("TEXT: expected UTF-8, got other bytes. Use a terminal whose encoding is UTF-8.") from None


def _as_json(found: TokenExplanation) -> dict[str, Any]:
    contributions = [contribution._asdict() for contribution in found.contributions]
    return {**vars(found), "contributions": contributions, "families": found.by_family()}


def print_explained(explained: list[TokenExplanation], tokens: list[str], top: int) -> None:
    """Print why each token of a sentence has its label, in the words of the picture."""
    from vcrf.labelling.reasons import said_reasons

    for position, found in enumerate(explained):
        if position and top:
            print_rich("")
        for line in (_headline(found), *said_reasons(found, tokens, position, top)):
            print_rich(line)


def _headline(found: TokenExplanation) -> str:
    from vcrf.labelling.reasons import question

    if found.known is None:
        return question(found)
    return f"{question(found)} It has {len(found.known)} known label{'s' * (len(found.known) != 1)}."
