"""UDPipe's interface: the models, and text in, text out. What is written is what `vcrf tag` writes, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from vcrf.data.attributes import read_attribute_lines
from vcrf.data.raw import InputFormat, OutputFormat, RawSentence, check_written_column, raw_content
from vcrf.labelling.attributes import label_attributes
from vcrf.labelling.labelling import Wanted, label_file
from vcrf.web.limits import Limits, Refused, check_tokens
from vcrf.web.models import Models, Served

# UDPipe's names of formats, and ours.
INPUTS = {"conllu": "conllu", "horizontal": "text", "vertical": "columns", "columns": "columns", "text": "text"}
OUTPUTS = {"conllu": "conllu", "tsv": "tsv", "json": "json"}


def listed(models: Models) -> dict[str, Any]:
    """Models and what they do: label. None has a tokenizer or a parser."""
    names = [served.name for served in models]
    return {"models": {name: ["tagger"] for name in names}, "default_model": names[0] if names else ""}


class Processing(NamedTuple):
    """A request that is begun: the name of the model, what is read so far, and what is written, piece by piece."""

    model: str
    read: Counted
    pieces: Iterator[str]

    def answer(self, pieces: list[str]) -> dict[str, Any]:
        """The answer as UDPipe gives it."""
        return {"model": self.model, "acknowledgements": [], "result": "".join(pieces)}


def process(models: Models, limits: Limits, fields: dict[str, bytes]) -> Processing:
    """Begin to label the field data."""
    served = models.get(_text(fields, "model"))
    _check_wanted(fields)
    if served.reads_attributes:
        return _process_attributes(served, limits, fields)
    wanted = Wanted(cast(OutputFormat, _choice(fields, "output", OUTPUTS)), marginals="marginals" in fields)
    content = fields["data"]
    facts = served.facts
    file = raw_content(
        content, "data", cast(InputFormat, _choice(fields, "input", INPUTS)), facts.layout if facts else None
    )  # fmt: skip
    check_written_column(file, wanted.marginals, wanted.output_format)
    counted = Counted(file.blocks, limits)
    return Processing(served.name, counted, iter(label_file(served.tagger, file._replace(blocks=counted), wanted)))


def _process_attributes(served: Served, limits: Limits, fields: dict[str, bytes]) -> Processing:
    """CRFsuite's data in, a label a line out: what `vcrf tag --input-format attributes` writes."""
    if (_text(fields, "input") or "attributes") != "attributes" or _text(fields, "output"):
        raise Refused(
            400, "This model reads attributes: send CRFsuite's data with input=attributes, and leave output out."
        )
    sentences = read_attribute_lines(_text(fields, "data").replace("\r\n", "\n").split("\n"), "data")
    n_tokens = sum(len(sentence.tokens) for sentence in sentences)
    check_tokens(limits, n_tokens)
    counted = Counted(iter(()), limits)
    counted.n_tokens = n_tokens
    return Processing(served.name, counted, iter(label_attributes(served.tagger, sentences, "marginals" in fields)))


class Counted:
    """Blocks of sentences, as long as they have no more tokens than a request may."""

    def __init__(self, blocks: Iterator[list[RawSentence]], limits: Limits) -> None:
        self.blocks, self.limits, self.n_tokens = blocks, limits, 0

    def __iter__(self) -> Iterator[list[RawSentence]]:
        return self

    def __next__(self) -> list[RawSentence]:
        block = next(self.blocks)
        self.n_tokens += sum(len(sentence.tokens) for sentence in block)
        check_tokens(self.limits, self.n_tokens)
        return block


def _check_wanted(fields: dict[str, bytes]) -> None:
    if "data" not in fields:
        raise Refused(400, "The required argument 'data' is missing: the text to label.")
    if "tokenizer" in fields:
        raise Refused(
            400,
            "The model has no tokenizer: send tokens, with input=horizontal (a sentence a line, blanks between), "
            "input=vertical (a token a line) or input=conllu, and leave tokenizer out.",
        )
    if "parser" in fields:
        raise Refused(400, "The model has no parser: leave parser out.")


def _choice(fields: dict[str, bytes], name: str, known: dict[str, str]) -> str:
    asked = _text(fields, name) or "conllu"
    if asked not in known:
        raise Refused(400, f"{name}={asked[:40]}: expected one of {', '.join(known)}.")
    return known[asked]


def _text(fields: dict[str, bytes], name: str) -> str:
    try:
        return fields.get(name, b"").decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(400, f"{name}: expected UTF-8.") from None
