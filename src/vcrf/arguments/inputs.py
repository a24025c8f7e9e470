"""What users pass as X and y: checks, and the way from lists to texts and label numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from numbers import Integral
from typing import Any, cast

import numpy as np

from vcrf import scratch
from vcrf.arguments.open_labels import are_texts, check_open, is_open, named
from vcrf.data.corpus import Corpus
from vcrf.data.interned import Interned
from vcrf.errors import InputError
from vcrf.families import Family, NamedFeature, Template, Text, intern_sentences, read_attributes
from vcrf.families.explicit import AttributeText
from vcrf.strings import has_surrogate
from vcrf.types import Floats, Label, UInts32

# Tagging works on blocks of this many tokens: scores stay in the cache, memory does not grow with the text.
TOKENS_PER_BLOCK = 1 << 15


def checked_sentence(sentence: Any) -> Sequence[Any]:
    """Check that one sentence is a sequence."""
    return sentence if type(sentence) is list else as_sentences([sentence])[0]


def as_sentences(X: Iterable[Any]) -> list[Sequence[Any]]:
    """Check that X is a collection of sequences, and list it."""
    if isinstance(X, (str, bytes, Mapping)) or not isinstance(X, Iterable):
        raise InputError(f"X must be a list of sentences, got {type(X).__name__}. Pass [sentence] for one.")
    sentences = [x if hasattr(x, "__len__") else _listed(x, i) for i, x in enumerate(X)]
    if {*map(type, sentences)} <= {list, tuple}:
        return sentences
    # CRFsuite's ItemSequence is no mapping, and gives its tokens as items.
    sentences = [x if isinstance(x, (list, Mapping)) or not hasattr(x, "items") else list(x.items()) for x in sentences]
    for i, sentence in enumerate(sentences):
        if isinstance(sentence, (str, bytes, Mapping)):
            raise InputError(
                f"Sentence {i} of X is a {type(sentence).__name__}: expected a list of tokens. "
                "Split text into tokens first, for one sentence pass [sentence]."
            )
    return sentences


def _listed(sentence: Any, index: int) -> list[Any]:
    if not isinstance(sentence, Iterable):
        raise InputError(f"Sentence {index} of X is a {type(sentence).__name__}: expected a list of tokens.")
    return list(sentence)


def sentences_and_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """X and y as they are given, or those of a corpus."""
    if y is not None:
        return X, y
    if isinstance(X, Corpus):
        return X.tokens, X.labels
    raise InputError(
        "This estimator requires y to be passed, but the target y is None: one list of labels a sentence. "
        "A Corpus, as `read_corpus` gives it, has them with it."
    )


def check_lengths(X: Sequence[Sequence[Any]], y: Sequence[Sequence[Any]]) -> None:
    """Raise InputError unless there is one list of labels a sentence and one label a token."""
    if len(X) != len(y):
        raise InputError(f"X and y differ in length: got {len(X)} sentences and {len(y)} lists of labels.")
    for i, (sentence, labels) in enumerate(zip(X, y, strict=True)):
        if len(sentence) != len(labels):
            raise InputError(
                f"Sentence {i}: expected one label a token, got {len(sentence)} tokens and "
                f"{len(labels)} labels. "
                "Correct this sentence or leave it out."
            )


def check_together(X_dev: object, y_dev: object) -> None:
    """Raise InputError if one of them is missing."""
    if (X_dev is None) != (y_dev is None):
        raise InputError("X_dev and y_dev belong together: got one without the other.")


def training_sentences(
    X: Iterable[Any], y: Iterable[Any], sample_weight: Sequence[float] | None = None, may_be_open: bool = False
) -> tuple[list[Sequence[Any]], list[list[Label]], Floats | None]:
    """Sentences, labels and weights (of sum 1) to train on: neither empty nor of weight 0.

    With `may_be_open` a label may be None or a set of labels.

    Raises
    ------
    InputError
        When there is nothing to train on, the shapes differ, or a label is neither str nor int.
    """
    if isinstance(X, Interned) and isinstance(y, Interned) and sample_weight is None:
        return cast(Any, X), cast(Any, y), None  # a reader has checked them
    sentences, labels = as_sentences(X), listed_labels(y)
    check_lengths(sentences, labels)
    check_labels(labels, may_be_open)
    n = len(sentences)
    weights = np.ones(n) if sample_weight is None else checked_weights(sample_weight, n)
    kept = [i for i, sentence in enumerate(sentences) if len(sentence) and weights[i] > 0.0]
    if not kept:
        raise InputError(
            f"Training needs at least one sentence with a token: got {len(sentences)} sentences, all of them "
            "empty or of weight 0. Check what was read into X."
        )
    if may_be_open:
        check_open([labels[i] for i in kept])
    normalised = None if sample_weight is None else weights[kept] / weights[kept].sum()
    return [sentences[i] for i in kept], [labels[i] for i in kept], normalised


def listed_labels(y: Iterable[Any]) -> list[list[Label]]:
    """Check that y is a collection of sequences, and list it."""
    if isinstance(y, (str, bytes)) or not isinstance(y, Iterable):
        raise InputError(f"y must be a list of lists of labels, got {type(y).__name__}.")
    listed = []
    for i, labels in enumerate(y):
        # A dict and a set have no order of their own to go by.
        if isinstance(labels, (str, bytes, Mapping, Set)) or not isinstance(labels, Iterable):
            raise InputError(f"y[{i}] must be a list of labels, one a token, got {labels!r}.")
        listed.append(labels.tolist() if isinstance(labels, np.ndarray) else list(labels))
    return listed


def check_labels(y: list[list[Label]], may_be_open: bool) -> None:
    """Refuse labels that are neither str nor int, naming the first."""
    for i, labels in enumerate([] if are_texts(y) else y):
        for t, label in enumerate(labels):
            for one in named([[label]]) if may_be_open else (label,):
                if not isinstance(one, (str, Integral)):
                    instead = "None leaves it open" if may_be_open else "Give every token a label"
                    raise InputError(
                        f"Sentence {i}, token {t}: a label must be a str or an int, got {type(one).__name__}: "
                        f"{one!r}. {instead}, or leave the sentence out."
                    )


def checked_weights(sample_weight: Sequence[float], n_sentences: int) -> Floats:
    """Return one finite weight a sentence, not negative."""
    try:
        weights = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"sample_weight needs {n_sentences} numbers, got {sample_weight!r:.80}.") from None
    if weights.shape != (n_sentences,) or not np.all((weights >= 0.0) & (weights < np.inf)):
        raise InputError(
            f"sample_weight needs {n_sentences} finite numbers that are not negative, one a sentence: got "
            f"shape {weights.shape}, from {weights.min(initial=np.inf)} to {weights.max(initial=-np.inf)}."
        )
    return weights


def check_characters(text: Text, classes: Iterable[Label]) -> None:
    """Refuse words, attributes and labels that are no text: they could be neither printed nor saved."""
    names = text.names if isinstance(text, AttributeText) else []
    labels = [label for label in classes if isinstance(label, str)]
    for kind, strings in (("word", text.words), ("attribute", names), ("label", labels)):
        if has_surrogate("".join(strings)):
            first = next(string for string in strings if has_surrogate(string))
            raise InputError(
                f"The {kind} {first!r} holds a lone surrogate, which is no character: expected text. Read the data in "
                "the encoding they have, or with errors='replace'."
            )


def sorted_classes(y: list[list[Label]] | Interned) -> list[Label]:
    """Return the distinct labels, sorted."""
    classes: list[Label] = list(y.strings) if isinstance(y, Interned) else list(dict.fromkeys(named(y)))
    if len({isinstance(label, str) for label in classes}) > 1:
        raise InputError("Labels must be all str or all int: got both. Convert them to str.")
    return sorted(classes)


def label_numbers(y: list[list[Label]] | Interned, classes: list[Label]) -> UInts32:
    """Flat label numbers, (n_tokens,); of a label left open the first that is possible."""
    number = {label: i for i, label in enumerate(classes)}
    if isinstance(y, Interned):
        return scratch.keep(np.array([number[label] for label in y.strings], np.uint32)[y.ids])
    known: Iterable[Any] = chain.from_iterable(y)
    if not are_texts(y):
        known = (next(named([[label]]), classes[0]) if is_open(label) else label for label in known)
    return np.fromiter(map(number.__getitem__, known), np.uint32)


def read_text(sentences: Sequence[Sequence[Any]], is_attributes: bool | None = None) -> Text:
    """Intern tokens, or flatten given attributes; None looks at the first token."""
    if isinstance(sentences, Interned):
        return Text(sentences.ptr, sentences.strings, sentences.ids)
    if is_attributes is None:
        is_attributes = not isinstance(first_token(sentences), str)
    return read_attributes(sentences) if is_attributes else intern_sentences(sentences)


def first_token(sentences: Sequence[Sequence[Any]]) -> Any:
    """The first token of all; "" if there is none."""
    return next((sentence[0] for sentence in sentences if len(sentence)), "")


def check_readable(text: Text, families: Sequence[Family]) -> None:
    """Raise InputError when a family reads words, or given attributes, and the text has none."""
    sources = chain.from_iterable(family.sources for family in families)
    for source in sources:
        if isinstance(text, AttributeText) and isinstance(source, Template):
            if source.reads_words:
                raise InputError(
                    f"The feature {source.name!r} is read off tokens: expected tokens as str, got dicts of "
                    "features or attributes. Pass lists of str."
                )
        elif not isinstance(text, AttributeText) and isinstance(source, NamedFeature):
            raise InputError(
                f"The feature {source.name!r} is given by the user: expected tokens as dicts of features or "
                "lists of attributes, got str. Pass X of the kind that the families read."
            )


def generator_of(random_state: Any) -> np.random.Generator:
    """The generator of a seed, or the generator that was given; None draws a seed.

    A `RandomState`, as scikit-learn hands it around, gives the seed.
    """
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            "`random_state` must be None, an integer of at least 0, a numpy Generator or RandomState: "
            f"got {random_state!r:.60}."
        ) from None


def blocks_of(sentences: list[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    """Cut the sentences into blocks of TOKENS_PER_BLOCK tokens, or a little more."""
    ends = np.cumsum(np.fromiter(map(len, sentences), np.int64, len(sentences)))
    first, before = 0, 0
    while first < len(sentences):
        last = min(int(np.searchsorted(ends, before + TOKENS_PER_BLOCK)) + 1, len(sentences))
        yield sentences[first:last]
        first, before = last, int(ends[last - 1])
