"""What the page shows of one sentence, as plain values: labels with posteriors, reasons, the lattice.

Labels are text here, whatever they are in the model. Probabilities are rounded to a millionth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vcrf.arguments.inputs import as_sentences
from vcrf.errors import InputError
from vcrf.labelling.attributes import reads_attributes, token_texts
from vcrf.labelling.explain import TokenExplanation, explain
from vcrf.labelling.reasons import in_words
from vcrf.labelling.tagger import kbest_of
from vcrf.lattice import DenseLattice, Lattice
from vcrf.strings import has_surrogate
from vcrf.types import Floats, Label

if TYPE_CHECKING:
    from vcrf.labelling.tagger import Tagger
    from vcrf.page.standalone import Page

# Arcs that are less probable are not drawn.
_FAINT = 1e-3


def sentence_view(
    tagger: Tagger, tokens: Sequence[Any], k: int = 5, allowed: Sequence[Any] | None = None
) -> dict[str, Any]:  # fmt: skip
    """Labels of a sentence, the posterior of every label at every token, and the k best sequences.

    Parameters
    ----------
    tagger : fitted
    tokens : the sentence
    k : sequences
    allowed : optional
        One entry a token: None, or a list of the labels that may stand there.
    """
    model = tagger._model()
    names = [str(label) for label in model.labels]
    choices = None if allowed is None else [own_labels(tagger, allowed, len(tokens))]
    # Scored once for all three: that is what a request costs.
    ((_, own),) = tagger._scored(as_sentences([tokens]), None, choices, is_own=True)
    scores = tagger._calibrated(own)
    best = own.decode_tokens().tolist()
    posterior = np.round(scores.label_marginals()[0], 6).tolist()
    sequences = next(kbest_of(scores, k)) if k and len(tokens) else []
    shown = token_texts(tokens)
    known = model.known_words(set(shown)) if len(model.vocabulary) else set(shown)
    return {
        "tokens": shown,
        "labels": [names[y] for y in best],
        "probabilities": [row[y] for row, y in zip(posterior, best, strict=True)],
        "posterior": posterior,
        "unknown": [token not in known for token in shown],
        "sequences": [
            {"labels": [names[y] for y in sequence], "probability": _rounded(p)} for sequence, p in sequences
        ],
    }


def own_labels(tagger: Tagger, allowed: Sequence[Any], n_tokens: int) -> list[list[Label] | None]:
    """The model's labels from their texts, one entry a token."""
    own = {str(label): label for label in tagger._model().labels}
    if len(allowed) != n_tokens:
        raise InputError(f"allowed needs one entry a token: got {len(allowed)} for {n_tokens} tokens.")
    found: list[list[Label] | None] = []
    for t, names in enumerate(allowed):
        if names is None:
            found.append(None)
            continue
        listed = list(names) if isinstance(names, (list, tuple)) else [names]
        unknown = [name for name in listed if not isinstance(name, str) or name not in own]
        if unknown or not listed:
            got = repr(unknown[0]) if unknown else "none"
            raise InputError(f"allowed, token {t}: expected labels of the model ({', '.join(own)}), got {got}.")
        found.append([own[name] for name in listed])
    return found


def why_view(
    tagger: Tagger,
    tokens: Sequence[Any],
    positions: Sequence[int] | None = None,
    allowed: Sequence[Any] | None = None,
) -> dict[str, Any]:
    """Why tokens have their labels, given what is allowed: see `vcrf.labelling.explain`."""
    choices = None if allowed is None else own_labels(tagger, allowed, len(tokens))
    explained = explain(tagger, tokens, positions, choices)
    places = range(len(tokens)) if positions is None else positions
    shown = token_texts(tokens)
    return {
        "tokens": shown,
        "explanations": [_explanation(found, t, shown[t]) for found, t in zip(explained, places, strict=True)],
    }


def _explanation(found: TokenExplanation, position: int, shown: str) -> dict[str, Any]:
    return {
        "position": position, "token": shown, "label": str(found.label),
        "probability": _rounded(found.probability),
        "runner_up": None if found.runner_up is None else str(found.runner_up),
        "runner_up_probability": _rounded(found.runner_up_probability),
        "runner_up_sequence": [str(label) for label in found.runner_up_sequence],
        "difference": found.difference,
        "contributions": [
            {"family": c.family, "attribute": c.attribute, "words": in_words(c), "position": c.position,
             "labels": [str(label) for label in c.labels], "value": c.value}
            for c in found.contributions
        ],
        "families": found.by_family(),
    }  # fmt: skip


def lattice_view(tagger: Tagger, tokens: Sequence[Any], allowed: Sequence[Any] | None = None) -> dict[str, Any]:
    """Posteriors of labels, and of pairs of neighbouring labels: arcs (label before, label, probability) by token."""
    names = [str(label) for label in tagger._model().labels]
    if not len(tokens):
        return {"tokens": [], "labels": [], "names": names, "posterior": [], "arcs": [], "log_partition": 0.0}
    choices = None if allowed is None else [own_labels(tagger, allowed, len(tokens))]
    ((_, scores),) = tagger._scored([tokens], None, choices)
    lattice = scores.lattice(0)
    marginals = scores.label_marginals()[0]
    pairs = _pair_marginals(lattice, marginals)
    best = scores.decode()[0].tolist()
    arcs: list[list[list[Any]]] = [[]]
    for t in range(1, len(tokens)):
        before, after = np.nonzero(pairs[t] >= _FAINT)
        rows = zip(before.tolist(), after.tolist(), pairs[t][before, after].tolist(), strict=True)
        arcs.append([[a, b, _rounded(p)] for a, b, p in rows])
    return {
        "tokens": token_texts(tokens), "labels": [names[b] for b in best], "names": names,
        "posterior": np.round(marginals, 6).tolist(), "arcs": arcs,
        "log_partition": lattice.log_partition(), "entropy": lattice.entropy(),
    }  # fmt: skip


def _pair_marginals(lattice: Lattice, marginals: Floats) -> Floats:
    """Posterior of (label before, label) by the position of the second, (n_positions, n_labels, n_labels)."""
    n, n_labels = marginals.shape
    if isinstance(lattice, DenseLattice):
        return lattice.pattern_marginals(2).reshape(n, n_labels, n_labels)
    pairs = np.zeros((n, n_labels, n_labels))
    seen = np.flatnonzero(marginals.max(axis=0) >= _FAINT).tolist()
    for a in seen:
        for b in seen:
            pairs[:, a, b] = lattice.pattern_marginal([a, b])
    return pairs


def sentence_page(tagger: Tagger, tokens: Sequence[Any], k: int = 5) -> Page:
    """The views of one sentence as a page that needs no service."""
    from vcrf.page.standalone import standalone

    if not reads_attributes(tagger._model()):
        _check_words(tokens)
    elif not tokens:
        raise InputError("A page shows a sentence, got no token.")
    names = [str(label) for label in tagger._model().labels]
    answers = {
        "/tag": {"names": names, "sentences": [sentence_view(tagger, tokens, k)]},
        "/explain": why_view(tagger, tokens),
        "/lattice": lattice_view(tagger, tokens),
    }
    return standalone("vcrf", ["tag", "why", "lattice"], answers, labels=names, models=[])


def _check_words(tokens: Sequence[Any]) -> None:
    """Refuse what is no sentence of words; of a long one only what is wrong is shown."""
    if isinstance(tokens, (str, bytes)) or not isinstance(tokens, Sequence):
        got = repr(tokens)
        raise InputError(f"A page shows a sentence of words: expected a list of tokens, got {got[:60]}.")
    if not tokens:
        raise InputError("A page shows a sentence of words, got no token.")
    for t, token in enumerate(tokens):
        if not isinstance(token, str) or not token:
            got = repr(token)
            raise InputError(
                f"A page shows a sentence of words: expected tokens as str, none empty, got {got[:60]} at token {t}."
            )
        if has_surrogate(token):
            raise InputError(
                f"A page shows a sentence of words: token {t}, {ascii(token)[:60]}, has half a character (a lone "
                "surrogate), which no file takes. Read the text as UTF-8."
            )


def _rounded(p: float) -> float:
    return round(float(p), 6)
