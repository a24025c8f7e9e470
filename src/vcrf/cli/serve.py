"""`vcrf serve`: a page to look at, and a service for pipelines."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcrf.cli.options import Form, Format, Split, Tag, column, format_name
from vcrf.cli.output import say

if TYPE_CHECKING:
    from vcrf.web.annotating import PoolFile
    from vcrf.web.models import Models, Served


def serve(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="Model files, as `vcrf train` writes them.")],
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Labelled sentences: for Errors, Compare and bounds.")
    ] = None,
    split: Split = None,
    tag: Tag = None,
    form: Form = None,
    input_format: Format = "auto",
    pool: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Sentences without labels, for Label: text, CoNLL-U or columns.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CoNLL-U file that Label writes, and goes on with.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Training data: Label can then train on them and the answers.")
    ] = None,
    train_split: Annotated[str | None, typer.Option(metavar="NAME", help="Split of the training data.")] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen: by default for this machine alone.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 is any free one.")] = 8080,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET", envvar="VCRF_TOKEN", show_default=False,
            help="Answer only who brings this secret; `auto` makes one. Also read from VCRF_TOKEN.",
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:  # fmt: skip
    """Show models in a browser, and answer programs that ask for labels.

    \b
    vcrf serve my.vcrf --open
    vcrf serve old.vcrf new.vcrf --data treebank.conllu.gz --split test
    vcrf serve my.vcrf --pool new.txt --answers answers.conllu --train my-train.conllu

    The page shows labels with probabilities, why a token has its label, the lattice, errors, trust, training, two
    models side by side, and families. Programs use UDPipe's interface (/models, /process) or JSON (/api/v1, described
    in /api/v1/openapi.json). A model that was trained on feature dicts, or converted, reads CRFsuite's format in the
    page and JSON objects of features in /api/v1. Ctrl-C ends it.
    """
    from vcrf.cli.interrupts import exit_code
    from vcrf.errors import InputError
    from vcrf.web import server

    server.check_installed()
    from vcrf.web.service import Service

    if (pool is None) != (answers is None):
        raise InputError("--pool has the sentences to label and --answers the file for the labels: pass both.")
    if pool is None and train is not None:
        raise InputError("--train belongs to --pool, which is not given.")
    if not host:
        raise InputError("--host: expected an address, as 127.0.0.1, or 0.0.0.0 for all of this machine's.")
    how = {"tag": column(tag), "split": split, "format": format_name(input_format), "form": form}
    listening = server.listen(host, port)
    with ExitStack() as if_it_fails:
        if_it_fails.callback(listening.close)
        served = _read(models, data, how)
        annotating = None
        if pool is not None and answers is not None:
            from vcrf.web.annotating import PoolFile

            annotating = _annotating(served, PoolFile(pool, answers, train, train_split))
        secret = _secret(token, host)
        hosts = (*server.LOOPBACK, host.lower()) if server.is_loopback(host) else ()
        _warm_up(served)
        service = Service(served, token=secret, hosts=hosts, annotating=annotating)
        address = server.address_of(listening, "127.0.0.1" if host == "0.0.0.0" else host, secret)
        if_it_fails.pop_all()
    is_stopped = False
    try:
        server.serve(service, listening, lambda: _begin(address, open_page, served))
    except KeyboardInterrupt:
        is_stopped = True
    if is_stopped:  # an exit out of the handler would look like work that was interrupted
        say("Stopped.")
        raise typer.Exit(exit_code())


def _read(paths: list[Path], data: Path | None, how: dict[str, Any]) -> Models:
    from vcrf.cli.labelled import read_data
    from vcrf.web.models import Models, names_of, read_served

    served = [read_served(path, name) for path, name in zip(paths, names_of(paths), strict=True)]
    if data is None:
        return Models(served)
    _check_reads_words(served, "--data")
    facts = served[0].facts
    corpus, _ = read_data(data, **how, trained=facts.layout if facts else None)
    if not {str(label) for label in served[0].tagger.classes_}.intersection(map(str, corpus.label_set)):
        say(f"{paths[0]} and {data} have no label in common: is the label in another column? Pass it with --tag.")
    return Models(served, corpus, data.name)


def _check_reads_words(served: list[Served], option: str) -> None:
    """Labelled sentences and those to label have words."""
    of_attributes = next((each for each in served if each.reads_attributes), None)
    if of_attributes is not None:
        from vcrf.errors import InputError

        raise InputError(
            f"{option} has words, and {of_attributes.path} reads attributes: leave {option} out, or serve that model "
            "by itself."
        )


def _annotating(models: Models, files: PoolFile) -> Any:
    from vcrf.cli.checks import check_output
    from vcrf.web.annotating import open_annotating

    _check_reads_words(list(models), "--pool")
    inputs = {files.pool: "the pool"}
    if files.training is not None:
        inputs[files.training] = "the training data"
    check_output("--answers", files.answers, inputs)
    given = {each.path: "a model" for each in models if each.path}  # without the retrained one of an earlier service
    found = open_annotating(models, files)
    check_output("the retrained model", found.model_path, given)
    return found


def _secret(token: str | None, host: str) -> str:
    from vcrf.web import server

    if token == "auto":
        token = server.new_token()
    elif token is not None:
        server.check_token(token)
    if not server.is_loopback(host):
        unguarded = "Anyone there can use the models and see the data: add --token auto."
        say(f"Warning: {host} can be reached by other machines. {'They need the token.' if token else unguarded}")
    return token or ""


def _warm_up(models: Models) -> None:
    """Load the kernels before the first request."""
    from vcrf.cli.compiling import compile_notice
    from vcrf.labelling.viewing import lattice_view, sentence_view, why_view

    with compile_notice():
        for served in models:
            tokens = [{"a": 1.0}, {"b": 1.0}] if served.reads_attributes else ["a", "b"]
            sentence_view(served.tagger, tokens, 2, [None, None])
            why_view(served.tagger, tokens)
            lattice_view(served.tagger, tokens)


def _begin(address: str, open_page: bool, models: Models) -> None:
    """Tell the address; then label the data, so that Errors opens at once."""
    from vcrf.web.trying import summary

    _tell(address, open_page)
    if models.data is not None:
        for served in models:
            summary(served, models.data)


def _tell(address: str, open_page: bool) -> None:
    say(f"{address}  (Ctrl-C ends)")
    if open_page:
        import webbrowser

        webbrowser.open(address)
