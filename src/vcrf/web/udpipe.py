"""UDPipe's interface: the models, and text in, text out. What is written is what `vcrf tag` writes, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from vcrf.data.attributes import read_attribute_lines
from vcrf.data.raw import InputFormat, OutputFormat, RawSentence, check_written_column, raw_content
from vcrf.labelling.attributes import label_attributes
from vcrf.labelling.labelling import OutputChoice, label_file
from vcrf.web.limits import Limits, Refused, check_tokens
from vcrf.web.models import Models

# UDPipe's names of formats, and ours.
INPUTS = {"conllu": "conllu", "horizontal": "text", "vertical": "columns", "columns": "columns", "text": "text"}
OUTPUTS = {"conllu": "conllu", "tsv": "tsv", "json": "json"}


def listed(models: Models) -> dict[str, Any]:
    """Models and what they do: label. None has a tokenizer or a parser."""
    names = [served.name for served in models]
    return {"models": {name: ["tagger"] for name in names}, "default_model": names[0] if names else ""}


class Processing:
    """A request: `pieces` reads and labels it bit by bit, on a worker; `answer` puts what is written together."""

    def __init__(self, models: Models, limits: Limits, fields: dict[str, bytes]) -> None:
        self.served = models.get(_text(fields, "model"))
        _check_wanted(fields)
        self.limits, self.fields, self.n_tokens = limits, fields, 0

    def pieces(self) -> Iterator[str]:
        """What `vcrf tag` writes of the field data."""
        return self._attributes() if self.served.reads_attributes else self._words()

    def answer(self, pieces: list[str]) -> dict[str, Any]:
        """The answer as UDPipe gives it."""
        return {"model": self.served.name, "acknowledgements": [], "result": "".join(pieces)}

    def _words(self) -> Iterator[str]:
        fields, facts = self.fields, self.served.facts
        wanted = OutputChoice(cast(OutputFormat, _choice(fields, "output", OUTPUTS)), marginals="marginals" in fields)
        input_format = cast(InputFormat, _choice(fields, "input", INPUTS))
        file = raw_content(fields["data"], "data", input_format, facts.layout if facts else None)
        check_written_column(file, wanted.marginals, wanted.output_format)
        yield from label_file(self.served.tagger, file._replace(blocks=self._counted(file.blocks)), wanted)

    def _counted(self, blocks: Iterator[list[RawSentence]]) -> Iterator[list[RawSentence]]:
        """Blocks of sentences, as long as they have no more tokens than a request may."""
        for block in blocks:
            self.n_tokens += sum(len(sentence.tokens) for sentence in block)
            check_tokens(self.limits, self.n_tokens)
            yield block

    def _attributes(self) -> Iterator[str]:
        """CRFsuite's data in, a label a line out: what `vcrf tag --input-format attributes` writes."""
        fields = self.fields
        if (_text(fields, "input") or "attributes") != "attributes" or _text(fields, "output"):
            raise Refused(
                400, "This model reads attributes: send CRFsuite's data with input=attributes, and leave output out."
            )
        sentences = read_attribute_lines(_text(fields, "data").replace("\r\n", "\n").split("\n"), "data")
        self.n_tokens = sum(len(sentence.tokens) for sentence in sentences)
        check_tokens(self.limits, self.n_tokens)
        yield from label_attributes(self.served.tagger, sentences, "marginals" in fields)


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
