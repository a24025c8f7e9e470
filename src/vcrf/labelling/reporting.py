"""What `vcrf tag --report` and `--review` see of a text while it is labelled."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from vcrf.data.raw import RawSentence
from vcrf.data.writers import Tagging
from vcrf.labelling.observing import observe
from vcrf.labelling.tagger import Tagger
from vcrf.trust.calibration import sentence_means
from vcrf.trust.drift import Drift, drift
from vcrf.trust.expected import ExpectedErrors, expected_errors
from vcrf.trust.selective import Acceptance, accepted

_LEAST_SURE = 10


class TextReport:
    """Counts what is labelled; a calibrated tagger is needed to say what that means.

    Parameters
    ----------
    tagger : calibrated
    is_report : whether more is wanted than what has to be checked

    Attributes
    ----------
    reviewed : the text of the sentences with something to check
    """

    def __init__(self, tagger: Tagger, is_report: bool = True) -> None:
        self.tagger, self.is_report = tagger, is_report
        self.reviewed: list[str] = []
        self.n_tokens = self.n_checked = self.n_reviewed = 0
        self._sureness: list[Any] = []
        self._tokens: list[Any] = []  # sureness of every token, four bytes each
        self._doubts: list[Any] = []
        self._unknown: list[Any] = []
        self._least: list[tuple[float, int, str]] = []  # a heap of the least sure: - probability, line, text

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "tagger": None}  # whoever joins it has one

    def see(self, sentences: Sequence[RawSentence], taggings: Sequence[Sequence[Tagging]]) -> None:
        """Take note of a block."""
        self.n_tokens += sum(len(sentence.tokens) for sentence in sentences)
        self.n_checked += sum(sum(best[0].checks or []) for best in taggings)
        if not self.is_report:
            return
        for block in observe(self.tagger, [sentence.tokens for sentence in sentences]):
            ptr, sure = block.scores.sent_ptr, block.sureness
            self._sureness.append(sentence_means(ptr, sure))
            self._tokens.append(sure.astype(np.float32))
            self._doubts.append(np.array([np.sum(1.0 - sure[a:b]) for a, b in pairwise(ptr.tolist())]))
            self._unknown.append(block.unknown_share)
            for p, sentence in zip(block.sequence_probability.tolist(), sentences[block.first :], strict=False):
                self._remember((-p, -sentence.first_line, " ".join(sentence.tokens)))

    def _remember(self, sentence: tuple[float, int, str]) -> None:
        heapq.heappush(self._least, sentence)
        if len(self._least) > _LEAST_SURE:
            heapq.heappop(self._least)

    def see_text(self, text: str, tagging: Tagging) -> None:
        """Keep a sentence that has something to check."""
        if any(tagging.checks or []):
            self.n_reviewed += 1
            self.reviewed.append(text)

    def join(self, later: TextReport) -> None:
        """Take note of what another one has seen of the text that follows; `reviewed` is left to the caller."""
        self.n_tokens += later.n_tokens
        self.n_checked += later.n_checked
        self.n_reviewed += later.n_reviewed
        self._sureness += later._sureness
        self._tokens += later._tokens
        self._doubts += later._doubts
        self._unknown += later._unknown
        for sentence in later._least:
            self._remember(sentence)

    def drift(self) -> Drift:
        """Whether the text differs from the calibration sentences."""
        return drift(self.tagger._calibration(), _joined(self._sureness), _joined(self._unknown))

    def expected(self) -> ExpectedErrors:
        """How many labels are wrong."""
        return expected_errors(self.tagger._calibration(), _joined(self._doubts), self.n_tokens)

    def share_accepted(self, max_error: float) -> tuple[Acceptance, float]:
        """A promise about tokens at the usual confidence, and the share of them that it accepts here."""
        promise = self.tagger.acceptance(max_error)
        sure = _joined(self._tokens)
        return promise, float(np.mean(accepted(sure, promise.threshold))) if len(sure) else 0.0

    def least_sure(self) -> list[dict[str, Any]]:
        """The sentences whose best sequence is least probable, the least first."""
        found = sorted(self._least, key=lambda item: (-item[0], -item[1]))
        return [{"line": -line, "probability": -p, "text": text} for p, line, text in found]


def _joined(parts: list[Any]) -> Any:
    return np.concatenate([np.zeros(0), *parts])
