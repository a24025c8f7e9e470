"""A small English corpus that nobody has to download: sentences of a little grammar, with word classes and entities.

The words are real, the sentences are made up: "The tired nurse saw a light near the old mill ." A word may belong to
several classes, names and rare words appear in new sentences only, and verbs agree with their subject, so that a
tagger has to look at words, endings and neighbours, as in a real text.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import Literal, NamedTuple

from vcrf.data import english_words as words
from vcrf.data.corpus import Corpus, Sentence
from vcrf.errors import InputError

SOURCE = "small English"
# A word's frequency falls with its place in the list to this power: many words are seen once or never.
_FALL = 0.75
_VOWELS = "aeiou"


class Token(NamedTuple):
    """A word, its class in Universal Dependencies, and its entity label (BIO)."""

    word: str
    upos: str
    entity: str = "O"


def small_english(n_sentences: int = 1000, seed: int = 0, labels: Literal["upos", "entities"] = "upos") -> Corpus:
    """Labelled English sentences from a little grammar; the same seed gives the same sentences everywhere.

    Parameters
    ----------
    n_sentences : int
    seed : int
        Sentences of one seed begin alike, however many are asked for.
    labels : "upos" or "entities"
        Word classes (NOUN, VERB, ...), or people, places and organisations (B-PER, I-PER, ..., O).

    Returns
    -------
    Corpus

    Examples
    --------
    >>> corpus = small_english(2)
    >>> " ".join(corpus.tokens[0])
    'Could a sailor find the Oakton Railway with Swanwood ?'
    """
    if labels not in ("upos", "entities"):
        raise InputError(f'`labels` must be "upos" or "entities", got {labels!r}.')
    if n_sentences < 0:
        raise InputError(f"`n_sentences` must not be negative, got {n_sentences}.")
    grammar = _Grammar(random.Random(seed))
    sentences = []
    for number in range(n_sentences):
        tokens = grammar.sentence()
        chosen = tuple(token.upos if labels == "upos" else token.entity for token in tokens)
        sentences.append(Sentence(tuple(token.word for token in tokens), chosen, f"{SOURCE}:{number + 1}"))
    return Corpus.from_sentences(sentences)


class _Grammar:
    """Draws sentences. Methods are named by what they return; each gives a list of tokens."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    # Draws use `random()` alone: it gives the same numbers in every version of Python.

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _word(self, group: Sequence[str]) -> str:
        sums = _weights(len(group))
        return group[min(bisect(sums, self._rng.random() * sums[-1]), len(group) - 1)]

    def _any(self, group: Sequence[str]) -> str:
        return group[int(self._rng.random() * len(group))]

    def _one(self, *ways: tuple[float, Callable[[], list[Token]]]) -> list[Token]:
        sums = list(accumulate(weight for weight, _ in ways))
        return ways[min(bisect(sums, self._rng.random() * sums[-1]), len(ways) - 1)][1]()

    def sentence(self) -> list[Token]:
        """A whole sentence with its mark at the end; the first letter is a capital."""
        tokens = self._one(
            (6.0, lambda: [*self.clause(), _mark(".")]),
            (1.2, lambda: [*self._opening(), _mark(","), *self.clause(), _mark(".")]),
            (1.0, lambda: [*self.clause(), Token(self._word(words.CONJUNCTIONS), "CCONJ"), *self.clause(), _mark(".")]),
            (1.2, lambda: [*self.clause(), *self._subordinate(), _mark(".")]),
            (0.6, lambda: [*self._subordinate(), _mark(","), *self.clause(), _mark(".")]),
            (1.2, lambda: [*self._question(), _mark("?")]),
            (0.7, lambda: [*self._order(), _mark(self._word([".", "!"]))]),
            (0.3, lambda: [Token(self._any(words.INTERJECTIONS), "INTJ"), _mark(","), *self.clause(), _mark(".")]),
        )
        first = tokens[0]
        return [first._replace(word=first.word[:1].upper() + first.word[1:]), *tokens[1:]]

    def clause(self) -> list[Token]:
        """Subject and predicate."""
        plural = self._chance(0.35)
        subject, person = self._subject(plural)
        return [*subject, *self._predicate(person)]

    def _opening(self) -> list[Token]:
        return self._one((1.0, self._adverb), (1.5, self._prepositional))

    def _subordinate(self) -> list[Token]:
        return [Token(self._any(words.SUBORDINATORS), "SCONJ"), *self.clause()]

    def _question(self) -> list[Token]:
        plural = self._chance(0.4)
        subject, person = self._subject(plural)
        verb = self._verb_phrase("base")
        if self._chance(0.3):
            return [Token(self._any(["why", "when", "where", "how"]), "ADV"), self._do(person), *subject, *verb]
        if self._chance(0.3):
            return [Token(self._word(words.MODALS), "AUX"), *subject, *verb]
        return [self._do(person), *subject, *verb]

    def _do(self, person: str) -> Token:
        return Token("did" if self._chance(0.5) else ("does" if person == "he" else "do"), "AUX")

    def _order(self) -> list[Token]:
        if self._chance(0.3):
            return [Token("do", "AUX"), Token("not", "PART"), *self._verb_phrase("base")]
        return self._verb_phrase("base")

    # Noun phrases.

    def _subject(self, plural: bool) -> tuple[list[Token], str]:
        """A subject, and the person of its verb: I, he or they."""
        if self._chance(0.3):
            pronoun = self._word(["they", "we", "you"] if plural else ["he", "she", "I", "it", "this", "that"])
            return [Token(pronoun, "PRON")], "they" if plural else ("I" if pronoun == "I" else "he")
        if not plural and self._chance(0.25):
            return self._name(), "he"
        if self._chance(0.05):
            return [*self._name(), Token("and", "CCONJ"), *self._name()], "they"
        nouns = words.PEOPLE if self._chance(0.7) else words.NOUNS
        return self._noun_phrase(plural, nouns), "they" if plural else "he"

    def _object(self) -> list[Token]:
        return self._one(
            (5.0, lambda: self._noun_phrase(self._chance(0.35))),
            (1.0, lambda: [Token(self._word(["it", "them", "him", "her", "me", "us", "that", "this"]), "PRON")]),
            (1.0, self._name),
        )

    def _noun_phrase(self, plural: bool, nouns: Sequence[str] = words.NOUNS) -> list[Token]:
        phrase = [*self._determiner(plural), *self._adjectives(), *self._nouns(plural, nouns)]
        if self._chance(0.14):
            phrase += self._prepositional()
        if self._chance(0.05):
            relative = Token(self._any(["that", "who", "which"]), "PRON")
            phrase += [relative, *self._predicate("they" if plural else "he")]
        return phrase

    def _determiner(self, plural: bool) -> list[Token]:
        if self._chance(0.18):
            return [Token(self._any(["my", "his", "her", "their", "our", "your"]), "PRON")]
        if plural:
            return self._one(
                (2.0, lambda: [Token("the", "DET")]),
                (1.5, list),
                (1.0, lambda: [Token(self._word(words.NUMBERS), "NUM")]),
                (1.0, lambda: [Token(self._any(["some", "these", "many", "those", "all", "no"]), "DET")]),
            )
        return [Token(self._word(["the", "a", "that", "this", "every", "each", "no", "another"]), "DET")]

    def _adjectives(self) -> list[Token]:
        found: list[Token] = []
        while len(found) < 2 and self._chance(0.3):
            if not found and self._chance(0.15):
                found.append(Token(self._any(words.DEGREES), "ADV"))
            found.append(Token(self._word(words.ADJECTIVES), "ADJ"))
        return found

    def _nouns(self, plural: bool, nouns: Sequence[str] = words.NOUNS) -> list[Token]:
        noun = self._word(nouns)
        compound = [Token(self._word(words.NOUNS), "NOUN")] if self._chance(0.12) else []
        return [*compound, Token(_plural(noun) if plural else noun, "NOUN")]

    def _name(self) -> list[Token]:
        return self._one((5.0, self._person), (2.0, self._place), (1.0, self._institution))

    def _person(self) -> list[Token]:
        names = [self._word(words.GIVEN_NAMES)] if self._chance(0.8) else []
        if not names or self._chance(0.5):
            names.append(self._any(words.NAME_BEGINNINGS) + self._any(words.SURNAME_ENDINGS))
        return _entity(names, "PER")

    def _place(self) -> list[Token]:
        if self._chance(0.5):
            return _entity([self._word(words.CITIES)], "LOC")
        village = self._any(words.NAME_BEGINNINGS) + self._any(words.VILLAGE_ENDINGS)
        return _entity(["Lake", village] if self._chance(0.15) else [village], "LOC")

    def _institution(self) -> list[Token]:
        name = self._one((1.0, self._place), (1.0, self._person))[-1].word
        return [Token("the", "DET"), *_entity([name, self._any(words.INSTITUTIONS)], "ORG")]

    def _prepositional(self) -> list[Token]:
        preposition = Token(self._word(words.PREPOSITIONS), "ADP")
        if self._chance(0.25):
            return [preposition, *self._one((3.0, self._place), (1.0, self._institution), (1.0, self._person))]
        plural = self._chance(0.3)
        return [preposition, *self._determiner(plural), *self._adjectives(), *self._nouns(plural)]

    # Verb phrases.

    def _predicate(self, person: str) -> list[Token]:
        return self._one(
            (6.0, lambda: self._verb_phrase("past" if self._chance(0.55) else person)),
            (1.6, lambda: [self._be(person), *self._quality()]),
            (1.0, lambda: [Token(self._word(words.MODALS), "AUX"), *self._not(), *self._verb_phrase("base")]),
            (0.9, lambda: [self._be(person), *self._not(), *self._verb_phrase("ing")]),
            (0.9, lambda: [self._have(person), *self._not(), *self._verb_phrase("participle")]),
            (0.8, lambda: self._passive(person)),
            (0.7, lambda: self._negated(person)),
            (0.7, lambda: self._with_to(person)),
            (0.8, lambda: self._with_clause(person)),
            (0.4, lambda: [self._have(person)._replace(upos="VERB"), *self._object()]),
        )

    def _verb_phrase(self, form: str) -> list[Token]:
        before = self._adverb() if self._chance(0.08) else []
        if self._chance(0.35):
            verb = [Token(_inflected(self._word(words.INTRANSITIVES), form), "VERB")]
        else:
            verb = [Token(_inflected(self._word(words.VERBS), form), "VERB"), *self._object()]
        after = self._one((3.0, list), (1.4, self._prepositional), (1.0, self._adverb))
        return [*before, *verb, *after]

    def _quality(self) -> list[Token]:
        degree = [Token(self._any(words.DEGREES), "ADV")] if self._chance(0.25) else []
        return self._one(
            (3.0, lambda: [*self._not(), *degree, Token(self._word(words.ADJECTIVES), "ADJ")]),
            (1.0, lambda: self._noun_phrase(False)),
            (1.0, self._prepositional),
        )

    def _passive(self, person: str) -> list[Token]:
        by = [Token("by", "ADP"), *self._object()] if self._chance(0.5) else []
        return [self._be(person), *self._not(), Token(_inflected(self._word(words.VERBS), "participle"), "VERB"), *by]

    def _negated(self, person: str) -> list[Token]:
        return [self._do(person), Token(self._any(["not", "n't"]), "PART"), *self._verb_phrase("base")]

    def _with_to(self, person: str) -> list[Token]:
        verb = _inflected(self._word(words.TO_VERBS), "past" if self._chance(0.6) else person)
        return [Token(verb, "VERB"), Token("to", "PART"), *self._verb_phrase("base")]

    def _with_clause(self, person: str) -> list[Token]:
        verb = _inflected(self._word(words.CLAUSE_VERBS), "past" if self._chance(0.7) else person)
        that = [Token("that", "SCONJ")] if self._chance(0.6) else []
        return [Token(verb, "VERB"), *that, *self.clause()]

    def _adverb(self) -> list[Token]:
        return [Token(self._word(words.ADVERBS), "ADV")]

    def _not(self) -> list[Token]:
        return [Token("not", "PART")] if self._chance(0.12) else []

    def _be(self, person: str) -> Token:
        present = {"I": "am", "he": "is", "they": "are"}[person]
        return Token(("were" if person == "they" else "was") if self._chance(0.5) else present, "AUX")

    def _have(self, person: str) -> Token:
        return Token("had" if self._chance(0.4) else ("has" if person == "he" else "have"), "AUX")


@cache
def _weights(n: int) -> list[float]:
    """Running sums of the frequencies of a list of n words."""
    return list(accumulate((place + 1) ** -_FALL for place in range(n)))


def _mark(text: str) -> Token:
    return Token(text, "PUNCT")


def _entity(names: Sequence[str], kind: str) -> list[Token]:
    return [Token(name, "PROPN", f"{'I' if place else 'B'}-{kind}") for place, name in enumerate(names)]


def _plural(noun: str) -> str:
    return words.IRREGULAR_PLURALS.get(noun) or _with_s(noun)


def _with_s(word: str) -> str:
    if word.endswith(("s", "sh", "ch", "x", "z")):
        return word + "es"
    if word.endswith("y") and word[-2] not in _VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def _inflected(verb: str, form: str) -> str:
    """A verb as past, participle, ing, base, or with a person: I, he, they."""
    if form == "he":
        return "goes" if verb == "go" else _with_s(verb)
    if form == "ing":
        return _stem(verb.removesuffix("ie") + "y" if verb.endswith("ie") else verb) + "ing"
    if form in ("past", "participle"):
        if verb in words.IRREGULAR:
            return words.IRREGULAR[verb][form == "participle"]
        if verb.endswith("y") and verb[-2] not in _VOWELS:
            return verb[:-1] + "ied"
        return verb + "d" if verb.endswith("e") else _stem(verb) + "ed"
    return verb


def _stem(verb: str) -> str:
    """A verb as it stands before an ending with a vowel: make, stop and see become mak, stopp and see."""
    if verb in words.DOUBLING:
        return verb + verb[-1]
    return verb[:-1] if verb.endswith("e") and not verb.endswith(("ee", "ye")) else verb
