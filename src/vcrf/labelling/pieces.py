"""Label pieces of a file, each by itself and in any process: see `vcrf.data.raw.open_pieces`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from vcrf.data.attributes import read_attribute_piece
from vcrf.data.raw import RawFile
from vcrf.data.stream import Piece
from vcrf.errors import InputError
from vcrf.labelling.attributes import label_attributes, reads_attributes
from vcrf.labelling.labelling import OutputChoice, label_file
from vcrf.labelling.reporting import TextReport
from vcrf.labelling.tagger import Tagger


class Labelled(NamedTuple):
    """The text of a piece with labels, and what a report needs to know of it."""

    text: bytes
    report: TextReport | None = None


@dataclass(frozen=True)
class WordLabeller:
    """Labels pieces of text, CoNLL-U or columns.

    Parameters
    ----------
    tagger : Tagger
    file : what the pieces are from
    wanted : Wanted
    report : one that has seen nothing, optional
        Each piece has a copy of it: see `TextReport.join`.
    """

    tagger: Tagger
    file: RawFile
    wanted: OutputChoice
    report: TextReport | None = None

    def __call__(self, piece: Piece) -> Labelled:
        report = None if self.report is None else TextReport(self.tagger, self.report.is_report)
        text = "".join(label_file(self.tagger, self.file.of_piece(piece), self.wanted, report))
        return Labelled(text.encode(), report)


@dataclass(frozen=True)
class AttributeLabeller:
    """Labels pieces of CRFsuite's data: a label a line, with its probability after a tab if asked for."""

    tagger: Tagger
    name: str
    marginals: bool

    def __post_init__(self) -> None:
        if not reads_attributes(self.tagger.model_):
            raise InputError("The model was trained on words: expected text, not attributes. Leave --input-format out.")

    def __call__(self, piece: Piece) -> Labelled:
        sentences = read_attribute_piece(piece, self.name)
        return Labelled("".join(label_attributes(self.tagger, sentences, self.marginals)).encode())
