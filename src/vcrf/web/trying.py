"""A model on labelled sentences: its errors by label, by sureness, by unknown words; two models side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from vcrf.labelling.seen import seen_in_training
from vcrf.metrics import ErrorRate, compare, evaluate
from vcrf.web.limits import Refused

if TYPE_CHECKING:
    from vcrf.data import Corpus
    from vcrf.web.models import Models, Served


class Tried(NamedTuple):
    """One labelled sentence under a model.

    Parameters
    ----------
    number : of the sentence, from 0
    source : file, without its folder, and line
    tokens, true, predicted : lists of str
    probabilities : of the predicted labels
    true_probabilities : of the true ones; 0 for a label that the model does not have
    unknown : whether each word was not in the training data
    """

    number: int
    source: str
    tokens: list[str]
    true: list[str]
    predicted: list[str]
    probabilities: list[float]
    true_probabilities: list[float]
    unknown: list[bool]

    @property
    def wrong(self) -> list[int]:
        """Positions of the wrong labels."""
        return [t for t, (a, b) in enumerate(zip(self.true, self.predicted, strict=True)) if a != b]

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **self._asdict(), "probabilities": [round(p, 4) for p in self.probabilities],
            "true_probabilities": [round(p, 4) for p in self.true_probabilities], "wrong": self.wrong,
        }  # fmt: skip


def tried(served: Served, corpus: Corpus) -> list[Tried]:
    """All labelled sentences under a model; computed once."""
    return served.remembered.get("tried", lambda: _tried(served, corpus))


def _tried(served: Served, corpus: Corpus) -> list[Tried]:
    tagger, model = served.tagger, served.tagger.model_
    words = {word for sentence in corpus.tokens for word in sentence}
    known = model.known_words(words) if len(model.vocabulary) else words
    predicted = tagger.predict(corpus.tokens)
    posteriors = tagger.predict_marginals(corpus.tokens)
    found = []
    for i, (tokens, true, labels, rows) in enumerate(
        zip(corpus.tokens, corpus.labels, predicted, posteriors, strict=True)
    ):
        by_text = [{str(label): p for label, p in row.items()} for row in rows]
        texts = [str(label) for label in labels]
        found.append(
            Tried(
                i, corpus.sources[i].rpartition("/")[2], list(tokens), [str(label) for label in true], texts,
                [row[y] for row, y in zip(by_text, texts, strict=True)],
                [row.get(str(y), 0.0) for row, y in zip(by_text, true, strict=True)],
                [token not in known for token in tokens],
            )
        )  # fmt: skip
    return found


def summary(served: Served, corpus: Corpus) -> dict[str, Any]:
    """Error rates with intervals, the confusion matrix, and errors by sureness; computed once."""
    return served.remembered.get("summary", lambda: _summary(tried(served, corpus)) | {"seen": _seen(served, corpus)})


def _seen(served: Served, corpus: Corpus) -> str:
    """What to say where these sentences were trained on."""
    return seen_in_training(served.tagger.model_, list(corpus.tokens))


def _summary(rows: list[Tried]) -> dict[str, Any]:
    true, predicted = [row.true for row in rows], [row.predicted for row in rows]
    known = {word for row in rows for word, new in zip(row.tokens, row.unknown, strict=True) if not new}
    found = evaluate(true, predicted, [row.tokens for row in rows], known)
    counts = Counter(pair for row in rows for pair in zip(row.true, row.predicted, strict=True))
    labels = sorted({label for pair in counts for label in pair})
    unknown = found.unknown_word_error
    return {
        "token_error": rate_json(found.token_error), "sentence_error": rate_json(found.sentence_error),
        "unknown_word_error": rate_json(unknown) if unknown else None,
        "labels": labels,
        "matrix": [[counts[a, b] for b in labels] for a in labels],
        "confusions": [c._asdict() for c in found.confusions],
    }  # fmt: skip


def rate_json(rate: ErrorRate) -> dict[str, Any]:
    """A rate with its interval."""
    return {"rate": rate.rate, "low": rate.low, "high": rate.high, "n_wrong": rate.n_wrong, "n": rate.n}


def _surest_mistake(row: Tried) -> float:
    return -max((row.probabilities[t] for t in row.wrong), default=-1.0)


# What comes first in a list of sentences.
ORDERS: dict[str, Callable[[Tried], float]] = {
    "surest": _surest_mistake,
    "doubtful": lambda row: min(row.probabilities, default=1.0),
    "most": lambda row: -float(len(row.wrong)),
    "file": lambda row: float(row.number),
}


def errors_view(
    models: Models,
    served: Served,
    true: str = "",
    predicted: str = "",
    only_unknown: bool = False,
    sort: str = "surest",
    offset: int = 0,
    limit: int = 20,
) -> dict[str, Any]:
    """The summary, and a part of the sentences that have the errors asked for."""
    if sort not in ORDERS:
        raise Refused(400, f"sort: expected one of {', '.join(ORDERS)}, got {sort[:40]!r}.")
    corpus = models.labelled()

    def has(row: Tried) -> bool:
        return any(
            row.true[t] != row.predicted[t]
            and (not true or row.true[t] == true)
            and (not predicted or row.predicted[t] == predicted)
            and (not only_unknown or row.unknown[t])
            for t in row.wrong
        )

    chosen = sorted((row for row in tried(served, corpus) if has(row)), key=ORDERS[sort])
    return {
        "model": served.name, "data": models.data_name, **summary(served, corpus),
        "n_sentences": len(chosen), "offset": offset,
        "sentences": [row.as_json() for row in chosen[offset : offset + limit]],
    }  # fmt: skip


def compare_view(models: Models, a: Served, b: Served, offset: int = 0, limit: int = 20) -> dict[str, Any]:
    """The paired test of two models, and a part of the sentences that they label differently."""
    corpus = models.labelled()
    rows_a, rows_b = tried(a, corpus), tried(b, corpus)
    found = a.recent.get(
        ("compare", b),
        lambda: compare([row.true for row in rows_a], _labels(rows_a), _labels(rows_b)),
    )
    differ = [(x, y) for x, y in zip(rows_a, rows_b, strict=True) if x.predicted != y.predicted]
    # Where one of them gains most: sentences whose numbers of errors differ most come first.
    differ.sort(key=lambda pair: -abs(len(pair[0].wrong) - len(pair[1].wrong)))
    return {
        "a": a.name, "b": b.name, "data": models.data_name, "comparison": vars(found),
        "rates": [summary(each, corpus)["token_error"] for each in (a, b)],
        "seen": [summary(each, corpus)["seen"] for each in (a, b)],
        "n_sentences": len(differ), "n_all": len(rows_a), "offset": offset,
        "sentences": [{"a": x.as_json(), "b": y.as_json()} for x, y in differ[offset : offset + limit]],
    }  # fmt: skip


def _labels(rows: Iterable[Tried]) -> list[list[str]]:
    return [row.predicted for row in rows]
