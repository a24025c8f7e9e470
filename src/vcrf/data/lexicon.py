"""Invented words: pronounceable stems with suffixes, closed classes, and exact emission probabilities.

A label is open or closed. With P(stem | label) and P(suffix | label) the open ones emit

    P(form | label) = sum over stem + suffix = form of P(stem | label) * P(suffix | label)

and the closed ones a short list of words. Stems, suffixes and closed words are shared between some labels, so
that a form does not always tell its label.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vcrf.errors import InputError

FloatArray: TypeAlias = NDArray[np.float64]
Weights: TypeAlias = dict[str, float]

_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "st", "tr", "kl")
_VOWELS = ("a", "e", "i", "o", "u")
_CODAS = ("", "", "", "n", "r", "s", "l", "k")

# Zipf-Mandelbrot: P(rank r) is proportional to (r + _ZIPF_SHIFT) ** -_ZIPF_EXPONENT, r = 0, 1, ...
_ZIPF_SHIFT = 2.7
_ZIPF_EXPONENT = 1.0
_SUFFIXES_PER_LABEL = 5


@dataclass(frozen=True)
class Lexicon:
    """All forms of a language and what each label emits.

    Parameters
    ----------
    forms : tuple of str
        The distinct forms.
    probs : (n_labels, n_forms) float64
        P(form | label); each row sums to one.
    """

    forms: tuple[str, ...]
    probs: FloatArray

    @cached_property
    def ids(self) -> dict[str, int]:
        """Position of each form in `forms`."""
        return {form: index for index, form in enumerate(self.forms)}

    def likelihood(self, tokens: list[str]) -> FloatArray:
        """Return P(token | label) for each token.

        Parameters
        ----------
        tokens : list of str, n of them

        Returns
        -------
        (n, n_labels) float64

        Raises
        ------
        InputError
            When a token is no form of the language.
        """
        for position, token in enumerate(tokens):
            if token not in self.ids:
                raise InputError(
                    f"token {position} is {token!r}, none of the language's {len(self.forms)} forms. "
                    "Pass sentences sampled from the same language."
                )
        return self.probs[:, [self.ids[token] for token in tokens]].T


def invent_lexicon(
    rng: np.random.Generator,
    n_open: int,
    n_closed: int,
    *,
    n_stems: int,
    n_suffixes: int,
    n_closed_words: int,
    ambiguity: float,
) -> Lexicon:
    """Invent the words of a language.

    Parameters
    ----------
    rng : numpy.random.Generator
        Only its uniform draws are used, because numpy keeps their stream the most stable.
    n_open, n_closed : int
        Number of labels; in the result the open ones come first.
    n_stems : int
        Number of stems of all open labels together.
    n_suffixes : int
        Number of suffixes, the empty one included; each open label takes up to five of them.
    n_closed_words : int
        Words per closed label.
    ambiguity : float
        Probability that a stem or a closed word has a second label of its kind.

    Returns
    -------
    Lexicon
    """
    stems = _share_out(rng, _invent_words(rng, n_stems, n_syllables=2), n_open, ambiguity)
    suffixes = _invent_suffixes(rng, n_suffixes)
    words = _share_out(rng, _invent_words(rng, n_closed * n_closed_words, n_syllables=1), n_closed, ambiguity)
    rows = [_inflect(_zipf(own), _pick_suffixes(rng, suffixes)) for own in stems]
    return _tabulate(rows + [_zipf(own) for own in words])


def _draw(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[int(rng.random() * len(choices))]


def _syllable(rng: np.random.Generator) -> str:
    return _draw(rng, _ONSETS) + _draw(rng, _VOWELS) + _draw(rng, _CODAS)


def _invent_words(rng: np.random.Generator, n_words: int, n_syllables: int) -> list[str]:
    """Return distinct words; one that exists already grows by a syllable, so that this always ends."""
    words: dict[str, None] = {}
    while len(words) < n_words:
        word = "".join(_syllable(rng) for _ in range(n_syllables))
        while word in words:
            word += _syllable(rng)
        words[word] = None
    return list(words)


def _invent_suffixes(rng: np.random.Generator, n_suffixes: int) -> list[str]:
    suffixes = {"": None}
    while len(suffixes) < n_suffixes:
        suffix = _draw(rng, _VOWELS)
        while suffix in suffixes:
            suffix += _draw(rng, _ONSETS[:14]) + _draw(rng, ("", *_VOWELS))
        suffixes[suffix] = None
    return list(suffixes)


def _share_out(rng: np.random.Generator, words: list[str], n_groups: int, ambiguity: float) -> list[list[str]]:
    """Give each word to one label, some to a second; group g gets a share proportional to 1 / (g + 2).

    The lists are shuffled: their order is the frequency rank, which should not go with the second label.
    """
    groups: list[dict[str, None]] = [{} for _ in range(n_groups)]
    shares = np.cumsum(1 / (np.arange(n_groups) + 2.0))
    for index, word in enumerate(words):
        # The first words go round, so that no label stays empty.
        home = index if index < n_groups else _pick(rng, shares)
        groups[home][word] = None
        if rng.random() < ambiguity:
            groups[_pick(rng, shares)][word] = None
    return [_shuffled(rng, list(group)) for group in groups]


def _pick(rng: np.random.Generator, cumulative: FloatArray) -> int:
    """Draw an index with probability proportional to the steps of `cumulative`."""
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))


def _shuffled(rng: np.random.Generator, words: list[str]) -> list[str]:
    return [words[i] for i in np.argsort(rng.random(len(words)), kind="stable")]


def _zipf(words: list[str]) -> Weights:
    weights = (np.arange(len(words)) + _ZIPF_SHIFT) ** -_ZIPF_EXPONENT
    return dict(zip(words, (weights / weights.sum()).tolist(), strict=True))


def _pick_suffixes(rng: np.random.Generator, suffixes: list[str]) -> Weights:
    chosen = _shuffled(rng, suffixes)[:_SUFFIXES_PER_LABEL]
    # Normalised exponential draws are a flat Dirichlet distribution.
    weights = -np.log1p(-rng.random(len(chosen))) + 1e-3
    return dict(zip(chosen, (weights / weights.sum()).tolist(), strict=True))


def _inflect(stems: Weights, suffixes: Weights) -> Weights:
    """Return P(form), summed over all ways to make the form."""
    forms: Weights = {}
    for stem, stem_prob in stems.items():
        for suffix, suffix_prob in suffixes.items():
            form = stem + suffix
            forms[form] = forms.get(form, 0.0) + stem_prob * suffix_prob
    return forms


def _tabulate(rows: list[Weights]) -> Lexicon:
    forms = tuple(dict.fromkeys(form for row in rows for form in row))
    ids = {form: index for index, form in enumerate(forms)}
    probs = np.zeros((len(rows), len(forms)))
    for label, row in enumerate(rows):
        probs[label, [ids[form] for form in row]] = list(row.values())
    return Lexicon(forms, probs)
