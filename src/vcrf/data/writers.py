"""Labelled sentences as text: back into the file they came from, or as CoNLL-U, two columns, or JSON.

Every writer is a function from a sentence and its taggings to text. With several taggings (the k best sequences) the
sentence is repeated, each time after the comments `# nbest = 1` and `# probability = 0.912`; in JSON they are a list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from vcrf.data.conllu import FIELDS, TAG_FIELDS
from vcrf.data.raw import OutputFormat, RawFile, RawReader, RawSentence, with_probability


class Tagging(NamedTuple):
    """One label sequence of a sentence.

    Parameters
    ----------
    labels : list of str
    probabilities : list of float, optional
        Posterior of each of the labels.
    probability : float, optional
        Posterior of the whole sequence: given for k-best.
    """

    labels: list[str]
    probabilities: list[float] | None = None
    probability: float | None = None


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
        return lambda sentence, taggings: write_conllu(sentence, taggings, file.conllu_tag), False
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
            probability = tagging.probabilities[i] if tagging.probabilities else None
            lines[row] = reader.labelled(lines[row], label, probability)
        if tagging.probability is not None:
            lines[:0] = [comment + end for comment in _nbest_comments(rank, tagging.probability)]
            _close(lines, end)
        copies += lines
    return "".join(copies)


def write_conllu(sentence: RawSentence, taggings: Sequence[Tagging], tag: int = TAG_FIELDS["upos"]) -> str:
    """New CoNLL-U: ID, FORM, the label in the field `tag`, and MISC with the probability; the text as a comment."""
    blank = ["_"] * len(FIELDS)

    def row(number: int, token: str, label: str, probability: float | None) -> str:
        fields = blank.copy()
        fields[0], fields[1], fields[tag] = str(number), token, label
        if probability is not None:
            fields[-1] = with_probability(fields[-1], probability)
        return "\t".join(fields)

    return _written(sentence, taggings, [f"# text = {' '.join(sentence.tokens)}"], row)


def write_tsv(sentence: RawSentence, taggings: Sequence[Tagging]) -> str:
    """Token, label and, if there is, probability, between tabs."""

    def row(_: int, token: str, label: str, probability: float | None) -> str:
        return f"{token}\t{label}" if probability is None else f"{token}\t{label}\t{probability:.3f}"

    return _written(sentence, taggings, [], row)


def _written(
    sentence: RawSentence,
    taggings: Sequence[Tagging],
    comments: list[str],
    row: Callable[[int, str, str, float | None], str],
) -> str:
    """Lines of a sentence that is written anew; nothing for one without tokens."""
    end = _end_of(sentence)
    lines: list[str] = []
    for rank, tagging in enumerate(taggings if sentence.tokens else [], 1):
        if tagging.probability is not None:
            lines += _nbest_comments(rank, tagging.probability)
        lines += comments
        for i, (token, label) in enumerate(zip(sentence.tokens, tagging.labels, strict=True)):
            lines.append(row(i + 1, token, label, tagging.probabilities[i] if tagging.probabilities else None))
        lines.append("")
    return "".join([line + end for line in lines])


def write_json(sentence: RawSentence, taggings: Sequence[Tagging]) -> str:
    """One object a line: line, tokens, labels, and probabilities and nbest if asked for."""
    if not sentence.tokens:
        return ""
    best = taggings[0]
    shown: dict[str, object] = {"line": sentence.first_line, "tokens": sentence.tokens, "labels": best.labels}
    if best.probabilities is not None:
        shown["probabilities"] = _rounded(best.probabilities)
    if best.probability is not None:
        shown["nbest"] = [_json_tagging(tagging) for tagging in taggings]
    return json.dumps(shown, ensure_ascii=False) + "\n"


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
