"""`Tagger`: the model of a CRFsuite file at work."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from vcrf.arguments.inputs import checked_sentence
from vcrf.compat.crfsuite_files import with_text_labels
from vcrf.compat.pycrfsuite.dumps import ParsedDump, dump_lines, model_info
from vcrf.errors import InputError
from vcrf.files import replacing
from vcrf.labelling.tagger import ModelTagger
from vcrf.model import Model
from vcrf.model.crfsuite import decode_crfsuite, encode_crfsuite
from vcrf.types import Label


class Tagger:
    """Labels one sentence at a time: `set` or `tag` it, then ask for probabilities."""

    _tagger: ModelTagger | None
    _sentence: Sequence[Any] | None
    _marginals: list[dict[Label, float]] | None

    def __new__(cls, *_: Any, **__: Any) -> Tagger:
        """State is made here: a subclass may forget to call `__init__`, as with python-crfsuite."""
        self = super().__new__(cls)
        self.close()
        return self

    @classmethod
    def of_model(cls, model: Model) -> Tagger:
        """A tagger of a model that is at hand."""
        tagger = cls()
        tagger._tagger = ModelTagger(with_text_labels(model))
        return tagger

    def open(self, name: str) -> closing[Tagger]:
        """Open a CRFsuite file; an OSError if there is none, an InputError (a ValueError) if it is not valid."""
        self._tagger = ModelTagger(decode_crfsuite(Path(name).read_bytes(), str(name)))
        return closing(self)

    def open_inmemory(self, value: bytes) -> closing[Tagger]:
        """Open the bytes of a CRFsuite file."""
        self._tagger = ModelTagger(decode_crfsuite(value, "the bytes given"))
        return closing(self)

    def close(self) -> None:
        """Forget the model."""
        self._tagger = self._sentence = self._marginals = None

    def labels(self) -> list[str]:
        """The labels by number."""
        return [str(label) for label in self._opened().classes_]

    def set(self, xseq: Any) -> None:
        """Take a sentence for `tag`, `probability` and `marginal`."""
        self._sentence, self._marginals = checked_sentence(xseq), None

    def tag(self, xseq: Any = None) -> list[str]:
        """Best labels of a sentence, by default of the one that was set."""
        tagger = self._opened()
        if xseq is not None:
            self.set(xseq)
        sentence, scorer = self._current(), tagger.model_.attributes
        if scorer is None:
            return [str(label) for label in tagger.predict([sentence])[0]]
        labels = tagger.model_.labels
        return [labels[i] for i in scorer.decode(sentence)]  # type: ignore[misc] # labels of a file are text

    def probability(self, yseq: Sequence[str]) -> float:
        """Probability of labels for the sentence that was set."""
        return self._opened().sequence_probability([self._current()], [yseq])[0]

    def marginal(self, y: str, pos: int) -> float:
        """Probability of a label at a token of the sentence that was set."""
        tagger = self._opened()
        if self._marginals is None:
            self._marginals = tagger.predict_marginals([self._current()])[0]
        if not 0 <= pos < len(self._marginals) or y not in self._marginals[pos]:
            raise InputError(f"There is no label {y!r} at token {pos} of a sentence of {len(self._marginals)} tokens.")
        return self._marginals[pos][y]

    def info(self) -> ParsedDump:
        """Labels, attributes and weights as dicts."""
        if self._tagger is None:
            raise RuntimeError("The tagger is closed: call open(path) first.")
        model = self._tagger.model_
        return model_info(model, len(encode_crfsuite(model)))

    def dump(self, filename: str | None = None) -> None:
        """Write the model as text to a file, or to stdout."""
        lines = dump_lines(self.info())
        if filename is None:
            sys.stdout.writelines(lines)
            return
        with replacing(Path(filename)) as file:
            file.writelines(line.encode("utf-8") for line in lines)

    def _opened(self) -> ModelTagger:
        if self._tagger is None:
            raise InputError("The tagger is closed: call open(path) first.")
        return self._tagger

    def _current(self) -> Sequence[Any]:
        if self._sentence is None:
            raise InputError("No sentence was given: call tag(xseq) or set(xseq) first.")
        return self._sentence
