"""Labelled sentences as text: back into the file they came from, or as CoNLL-U, two columns, or JSON.

Every writer is a function from a sentence and its taggings to text. With several taggings (the k best sequences) the
sentence is repeated, each time after the comments `# nbest = 1` and `# probability = 0.912`; in JSON they are a list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from vcrf.data.conllu import FIELDS
from vcrf.data.layout import Layout, conllu_layout
from vcrf.data.raw import Notes, OutputFormat, RawFile, RawReader, RawSentence, escaped, with_notes

_UPOS = conllu_layout("upos")


class Span(NamedTuple):
    """Tokens first .. last (included) that are one entity, and how probable that is."""

    first: int
    last: int
    kind: str
    probability: float


class Tagging(NamedTuple):
    """One label sequence of a sentence.

    Parameters
    ----------
    labels : list of str
    probabilities : list of float, optional
        Posterior of each of the labels.
    probability : float, optional
        Posterior of the whole sequence: given for k-best.
    spans : list of Span, optional
        Its entities, where labels mark them.
    sets : list of list of str, optional
        Label set of each token.
    span_set : list of Span, optional
        Spans that may be there.
    checks : list of bool, optional
        Whether a person has to check the token.
    """

    labels: list[str]
    probabilities: list[float] | None = None
    probability: float | None = None
    spans: list[Span] | None = None
    sets: list[list[str]] | None = None
    span_set: list[Span] | None = None
    checks: list[bool] | None = None

    def notes(self, i: int) -> Notes:
        """What is said of token i beside its label; the same names for every token."""
        notes = []
        if self.probabilities is not None:
            notes.append(("Prob", f"{self.probabilities[i]:.3f}"))
        if self.spans is not None:
            notes.append(("Span", next((f"{span.probability:.3f}" for span in self.spans if span.first == i), "")))
        if self.sets is not None:
            notes.append(("Labels", ",".join(map(escaped, self.sets[i]))))
        if self.span_set is not None:
            begun = [f"{escaped(span.kind)}:{span.last - i + 1}" for span in self.span_set if span.first == i]
            notes.append(("Spans", ",".join(begun)))
        if self.checks is not None:
            notes.append(("Check", "Yes" if self.checks[i] else ""))
        return notes


Writer: TypeAlias = Callable[[RawSentence, Sequence[Tagging]], str]


def choose_writer(file: RawFile, output_format: OutputFormat | None) -> tuple[Writer, bool]:
    """Return the writer of a format, and whether it keeps the input's lines.

    CoNLL-U is written back into CoNLL-U, and tsv into a column file; None means that, and CoNLL-U for plain text.
    """
    reader = file.reader
    output_format = output_format or reader.own_format or "conllu"
    if output_format == reader.own_format:
        return lambda sentence, taggings: write_back(reader, sentence, taggings), True
    if output_format == "conllu":
        return lambda sentence, taggings: write_conllu(sentence, taggings, file.conllu), False
    return write_tsv if output_format == "tsv" else write_json, False


def write_back(reader: RawReader, sentence: RawSentence, taggings: Sequence[Tagging]) -> str:
    """All lines as they were, with other labels."""
    if not sentence.tokens:
        return "".join(sentence.lines)
    end = _end_of(sentence)
    copies = []
    for rank, tagging in enumerate(taggings, 1):
        lines = sentence.lines.copy()
        for i, (row, label) in enumerate(zip(sentence.rows, tagging.labels, strict=True)):
            lines[row] = reader.labelled(lines[row], label, tagging.notes(i))
        if tagging.probability is not None:
            lines[:0] = [comment + end for comment in _nbest_comments(rank, tagging.probability)]
            _close(lines, end)
        copies += lines
    return "".join(copies)


def write_conllu(sentence: RawSentence, taggings: Sequence[Tagging], layout: Layout = _UPOS) -> str:
    """New CoNLL-U: ID, FORM, the label where the layout has it, and MISC with the notes; the text as a comment."""
    blank = ["_"] * len(FIELDS)

    def row(number: int, token: str, label: str, notes: Notes) -> str:
        fields = blank.copy()
        fields[0], fields[1] = str(number), token
        for column, value in layout.fields_of(label):
            fields[column] = value
        if notes:
            fields[-1] = with_notes(fields[-1], notes)
        return "\t".join(fields)

    return _written(sentence, taggings, [f"# text = {' '.join(sentence.tokens)}"], row)


def write_tsv(sentence: RawSentence, taggings: Sequence[Tagging]) -> str:
    """Token, label and notes (`_` if empty), between tabs."""

    def row(_: int, token: str, label: str, notes: Notes) -> str:
        return "\t".join([token, label, *(value or "_" for _, value in notes)])

    return _written(sentence, taggings, [], row)


def _written(
    sentence: RawSentence,
    taggings: Sequence[Tagging],
    comments: list[str],
    row: Callable[[int, str, str, Notes], str],
) -> str:
    """Lines of a sentence that is written anew; nothing for one without tokens."""
    end = _end_of(sentence)
    lines: list[str] = []
    for rank, tagging in enumerate(taggings if sentence.tokens else [], 1):
        if tagging.probability is not None:
            lines += _nbest_comments(rank, tagging.probability)
        lines += comments
        for i, (token, label) in enumerate(zip(sentence.tokens, tagging.labels, strict=True)):
            lines.append(row(i + 1, token, label, tagging.notes(i)))
        lines.append("")
    return "".join([line + end for line in lines])


def write_json(sentence: RawSentence, taggings: Sequence[Tagging]) -> str:
    """One object a line: line, tokens, labels, and what else was asked for."""
    if not sentence.tokens:
        return ""
    best = taggings[0]
    shown: dict[str, object] = {"line": sentence.first_line, "tokens": sentence.tokens, "labels": best.labels}
    if best.probabilities is not None:
        shown["probabilities"] = _rounded(best.probabilities)
    if best.spans is not None:
        shown["spans"] = _json_spans(best.spans)
    if best.sets is not None:
        shown["label_sets"] = best.sets
    if best.span_set is not None:
        shown["span_set"] = _json_spans(best.span_set)
    if best.checks is not None:
        shown["check"] = best.checks
    if best.probability is not None:
        shown["nbest"] = [_json_tagging(tagging) for tagging in taggings]
    return json.dumps(shown, ensure_ascii=False) + "\n"


def _json_spans(spans: list[Span]) -> list[dict[str, object]]:
    return [{**span._asdict(), "probability": round(span.probability, 6)} for span in spans]


def _json_tagging(tagging: Tagging) -> dict[str, object]:
    shown: dict[str, object] = {"labels": tagging.labels, "probability": tagging.probability}
    if tagging.probabilities is not None:
        shown["probabilities"] = _rounded(tagging.probabilities)
    return shown


def _rounded(probabilities: list[float]) -> list[float]:
    return [round(probability, 6) for probability in probabilities]


def _nbest_comments(rank: int, probability: float) -> list[str]:
    return [f"# nbest = {rank}", f"# probability = {probability:.6g}"]


def _end_of(sentence: RawSentence) -> str:
    return "\r\n" if sentence.lines[0].endswith("\r\n") else "\n"


def _close(lines: list[str], end: str) -> None:
    """End the last line, and the sentence by a blank line."""
    if not lines[-1].endswith("\n"):
        lines[-1] += end
    if lines[-1].strip():
        lines.append(end)
