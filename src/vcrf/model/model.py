"""The model: what is needed to tag, and the facts of its training.

A model has attributes, each with a few weighted tag patterns. The score of labels y for a sentence is

    score(y) = sum over t, attributes a at t, patterns z of a that end at t of  value(a, t) * weight(a, z)

where a pattern of k labels ends at t when (y_{t-k+1}, ..., y_t) = z; none does before position k - 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from vcrf import kernels
from vcrf.decoding.attributes import AttributeScorer
from vcrf.decoding.patterns import Firing, PatternWeights
from vcrf.decoding.potentials import Potentials
from vcrf.decoding.restrict import forbid
from vcrf.decoding.words import WordScorer
from vcrf.families.explicit import AttributeText, NamedFeature
from vcrf.families.family import Source
from vcrf.families.templates import BIAS, Template
from vcrf.families.text import Text, intern_sentences
from vcrf.lattice import Lattice
from vcrf.model.facts import TrainingFacts
from vcrf.model.spreading import spread_components
from vcrf.problem import Components, KnownLabels
from vcrf.trust.calibration import Calibration
from vcrf.types import Bools, Floats, Ints, Label, UInts32, UInts64


@dataclass(frozen=True)
class FamilyFacts:
    """One family after training.

    Attributes
    ----------
    name : str
    tags : length of its tag patterns
    complexity : r_k
    l1, l2 : its strengths in the penalty l1 |w| + l2 w**2 / 2
        Where features have complexities of their own, these three are means over the family's attributes.
    n_candidates : attributes x tag patterns before any reduction
    n_columns : distinct columns that have an attribute of the family
    n_active : features with a weight
    l1_mass : sum of the absolute weights
    """

    name: str
    tags: int
    complexity: float
    l1: float
    l2: float
    n_candidates: int
    n_columns: int
    n_active: int
    l1_mass: float


class Feature(NamedTuple):
    """One weight of a model, for people: `labels` is the tag pattern, the oldest label first."""

    family: str
    source: Source
    attribute: str
    labels: tuple[Label, ...]
    weight: float


@dataclass(frozen=True, eq=False)
class Model:
    """Sparse weights of attributes x tag patterns.

    Attributes
    ----------
    labels : the labels by number
    sources : what reads attributes; rows source_ptr[s] .. source_ptr[s+1]-1 are the attributes of source s
    family_of : (n_sources, longest + 1) int64, family of (source, pattern length), -1 = none
    families : facts of training
    source_ptr : (n_sources + 1,) int64
    keys : (n_rows,) uint64, content hash of each attribute
    names : the attributes for people
    ptr : (n_rows + 1,) int64, entries ptr[r] .. ptr[r+1]-1 belong to row r
    lengths, codes, weights : (n_entries,) pattern length, pattern code, weight
    facts : the run that trained it, None if nothing did
    vocabulary : (n_words,) uint64, sorted hashes of the words of the training text; none for given attributes
    sentences : (n_sentences,) uint64, sorted `fingerprints` of the training sentences, and of those of the model that
        training began with; none if they are not known
    calibration : what held-out sentences say about it, None if nothing does
    components : what labels have in common, if families are on it: their kind of parts is the last in `family_of`
    known : the labels that frequent words may have, in training as in prediction; None: all may have all

    A field that is added here is saved once `file` lists it.
    """

    labels: list[Label]
    sources: list[Source]
    family_of: Ints
    families: list[FamilyFacts]
    source_ptr: Ints
    keys: UInts64
    names: Sequence[str]
    ptr: Ints
    lengths: UInts32
    codes: UInts32
    weights: Floats
    facts: TrainingFacts | None = None
    vocabulary: UInts64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    sentences: UInts64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    calibration: Calibration | None = None
    components: Components | None = None
    known: KnownLabels | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.labels)

    @property
    def norm(self) -> str:
        """Norm of the penalty in training: "l1", "l2" or "elastic"."""
        has_l1, has_l2 = any(f.l1 > 0.0 for f in self.families), any(f.l2 > 0.0 for f in self.families)
        return ("elastic" if has_l1 else "l2") if has_l2 else "l1"

    @property
    def order(self) -> int:
        """Longest tag pattern that has a weight, at least 1."""
        if self.components is None:
            return int(self.lengths.max(initial=1))
        longest = int(self.lengths[self.lengths < self.component_kind].max(initial=1))
        return max(longest, 2) if np.any(self.lengths > self.component_kind) else longest

    @property
    def component_kind(self) -> int:
        """The kind of component values in `lengths`, 0 if there are none; those of pairs of values come after it."""
        return 0 if self.components is None else int(self.family_of.shape[1]) - 1 - len(self.components.pairs)

    def assignments(self, kind: int) -> int:
        """Assignments of a part of a kind: tag patterns of a length, component values, or pairs of these."""
        if self.components is None or kind < self.component_kind:
            return int(self.n_labels**kind)
        return (len(self.components), *self.components.pair_sizes)[kind - self.component_kind]

    @cached_property
    def scored(self) -> Model:
        """The same scores by weights of labels and tag patterns alone."""
        if self.components is None:
            return self
        ptr, lengths, codes, weights = spread_components(
            self.components, self.component_kind, self.ptr, self.lengths, self.codes, self.weights
        )
        table, kind = self.family_of.copy(), self.component_kind
        # A label, or a pair of labels, may have a weight because of its components alone.
        table[:, 1] = np.where(table[:, 1] < 0, table[:, kind], table[:, 1])
        if self.components.pairs:
            table[:, 2] = np.where(table[:, 2] < 0, table[:, kind + 1 :].max(axis=1), table[:, 2])
        return replace(
            self, family_of=table[:, :kind], ptr=ptr, lengths=lengths, codes=codes, weights=weights, components=None
        )

    def potentials(self, text: Text) -> Potentials:
        """Scores of a text; attributes that training did not weight simply do not fire. Known labels are in force."""
        scores = self.free_potentials(text)
        return scores if self.known is None else forbid(scores, self.known.masks(text))

    def free_potentials(self, text: Text) -> Potentials:
        """Scores of a text, whatever the labels that words may have."""
        if self.words is not None and not isinstance(text, AttributeText):
            return self.words.potentials_of(text)
        return self._fired_potentials(text)

    @cached_property
    def words(self) -> WordScorer | None:
        """What scores tokenised sentences quickly; None if the model reads more than templates."""
        if self.components is not None:
            return self.scored.words
        if not all(type(source) is Template for source in self.sources):
            return None
        return WordScorer(self, self._patterns.is_plain, self._patterns.tables, self._patterns.automaton)

    @cached_property
    def attributes(self) -> AttributeScorer | None:
        """What scores given attributes quickly; None if the model has more than their labels and pairs of labels."""
        if self.components is not None:
            return self.scored.attributes
        patterns = self._patterns
        n_named = sum(len(rows) for source, rows in self._rows_by_source() if isinstance(source, NamedFeature))
        of_others = len(self.keys) - n_named
        is_simple = patterns.automaton is None and patterns.order <= 2 and not len(patterns.longer.weights)
        if not n_named or not is_simple or of_others > 1 or self._has_single_of_others():
            return None
        return AttributeScorer(patterns, lambda keys: self._named_lookup.find(keys))

    def _has_single_of_others(self) -> bool:
        """Whether something else than a given attribute has weights of single labels."""
        others = [rows for source, rows in self._rows_by_source() if not isinstance(source, NamedFeature)]
        rows = np.concatenate([np.zeros(0, np.int64), *others])
        ptr = self._patterns.single.ptr
        return bool(np.any(ptr[rows + 1] > ptr[rows]))

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without what is derived from them."""
        return {given.name: getattr(self, given.name) for given in fields(self)}

    def _fired_potentials(self, text: Text) -> Potentials:
        """Scores of any text, attribute by attribute."""
        return self._patterns.score(text.sent_ptr, self._fire(text))

    def decode(self, text: Text) -> list[UInts32]:
        """Best labels of each sentence, as label numbers."""
        return self.potentials(text).decode()

    def lattice(self, text: Text, i: int) -> Lattice:
        """All label sequences of sentence i; for many sentences ask `potentials` once."""
        return self.potentials(text).lattice(i)

    def label_marginals(self, text: Text) -> list[Floats]:
        """Posterior of every label, one array (n_positions, n_labels) a sentence."""
        return self.potentials(text).label_marginals()

    def known_words(self, words: Iterable[str]) -> set[str]:
        """Those of the words that the training text has."""
        distinct = list(dict.fromkeys(words))
        hashes = intern_sentences([distinct]).reading("word")[:-1]
        if not len(self.vocabulary):
            return set()
        # The vocabulary is sorted: np.isin would look at all of it for one sentence.
        place = np.minimum(np.searchsorted(self.vocabulary, hashes), len(self.vocabulary) - 1)
        is_known = self.vocabulary[place] == hashes
        return {word for word, known in zip(distinct, is_known.tolist(), strict=True) if known}

    def features(self) -> Iterator[Feature]:
        """All weights with their names, source by source."""
        for row in range(len(self.keys)):
            for j in range(self.ptr[row], self.ptr[row + 1]):
                yield self.feature(row, j)

    def feature(self, row: int, j: int) -> Feature:
        """Entry j, of the attribute `row`, with its name."""
        s = int(np.searchsorted(self.source_ptr, row, side="right")) - 1
        length = int(self.lengths[j])
        labels = self.labels_of(length, int(self.codes[j]))
        family = self.families[self.family_of[s, length]].name
        return Feature(family, self.sources[s], self.names[row], labels, float(self.weights[j]))

    def labels_of(self, kind: int, code: int) -> tuple[Label, ...]:
        """The labels of an assignment: of a tag pattern, the oldest first; of component values, their names."""
        if self.components is not None and kind >= self.component_kind:
            if kind == self.component_kind:
                return (self.components.names[code],)
            return self.components.name_of_pair(kind - self.component_kind - 1, code)
        return tuple(self.labels[b] for b in _digits(code, kind, self.n_labels))

    def heaviest(self, label: Label, n: int) -> list[Feature]:
        """The n features of largest absolute weight whose tag pattern ends in a label, or that are of a part of it."""
        number = self.labels.index(label)
        ends = self.codes % np.uint32(self.n_labels) == number
        if self.components is not None:
            is_value = self.lengths == self.component_kind
            ends = np.where(is_value, np.isin(self.codes, self.components.values_of(number)), ends)
            for i, values in enumerate(self.components.pair_values):
                is_pair = self.lengths == self.component_kind + 1 + i
                ends = np.where(is_pair, self.codes % len(values) == self.components.value_of[i, number], ends)
        ends_so = np.flatnonzero(ends)
        order = np.argsort(-np.abs(self.weights[ends_so]), kind="stable")[:n]
        entries = ends_so[order]
        rows = np.searchsorted(self.ptr, entries, side="right") - 1
        return [self.feature(row, j) for row, j in zip(rows.tolist(), entries.tolist(), strict=True)]

    def occurrences(self, text: Text) -> Iterator[tuple[int, int, float]]:
        """Position, row and value of every attribute of a text that has a weight, in no particular order."""
        for positions, rows, values in self._fire(text):
            kept = rows < len(self.keys)
            ones = np.ones(len(positions)) if len(values) == 0 else values
            yield from zip(positions[kept].tolist(), rows[kept].tolist(), ones[kept].tolist(), strict=True)

    # ---- internal ----

    def _fire(self, text: Text) -> Iterator[Firing]:
        """Positions, rows and values (empty for indicators) of the attributes that fire, by source."""
        for source, lookup in self._lookups:
            read = source.read(text)
            values = np.zeros(0) if read.values is None else read.values
            yield Firing(read.positions, lookup.find(read.keys), values)
        if isinstance(text, AttributeText):
            # An attribute's string names its feature too: one table serves all named features.
            is_indicator = bool(np.all(text.values == 1.0))
            rows = self._named_lookup.find(text.keys())[text.attributes]
            yield Firing(text.positions, rows, np.zeros(0) if is_indicator else text.values)

    @cached_property
    def _lookups(self) -> list[tuple[Source, Lookup]]:
        """A table from keys to rows for each source that has any, named features apart."""
        return [
            (source, Lookup.build(self.keys, rows))
            for source, rows in self._rows_by_source()
            if len(rows) and not isinstance(source, NamedFeature)
        ]

    @cached_property
    def _named_lookup(self) -> Lookup:
        named = [rows for source, rows in self._rows_by_source() if isinstance(source, NamedFeature)]
        return Lookup.build(self.keys, np.concatenate([np.zeros(0, np.int64), *named]))

    def _rows_by_source(self) -> Iterator[tuple[Source, Ints]]:
        for s, source in enumerate(self.sources):
            yield source, np.arange(self.source_ptr[s], self.source_ptr[s + 1])

    @cached_property
    def _patterns(self) -> PatternWeights:
        if self.components is not None:
            return self.scored._patterns
        sources = np.repeat(np.arange(len(self.sources)), np.diff(self.ptr[self.source_ptr]))
        is_plain = plain_patterns(self.sources, sources, self.lengths)
        return PatternWeights(self.n_labels, self.ptr, self.lengths, self.codes, self.weights, is_plain)


def plain_patterns(sources: Sequence[Source], source_of: Ints, lengths: UInts32) -> Bools:
    """Which entries are plain tag patterns: of length 2 or more, with the bias."""
    is_bias = np.array([source == BIAS for source in sources], bool)
    return np.asarray((lengths > 1) & is_bias[source_of])


class Lookup(NamedTuple):
    """Hash table from keys to rows; a key that is not there gets the empty row."""

    rows: UInts32
    slots_key: UInts64
    slots_id: UInts32

    @classmethod
    def build(cls, keys: UInts64, rows: Ints) -> Lookup:
        size = 1 << int(2 * len(rows) + 1).bit_length()
        slots_key, slots_id = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
        kernels.hashing.intern_keys(keys[rows], slots_key, slots_id, np.empty(len(rows), np.uint32))
        return cls(np.append(rows, len(keys)).astype(np.uint32), slots_key, slots_id)

    def find(self, keys: UInts64) -> UInts32:
        ids = np.empty(len(keys), np.uint32)
        kernels.hashing.find_keys(keys, self.slots_key, self.slots_id, len(self.rows) - 1, ids)
        return self.rows[ids]


def _digits(code: int, length: int, n_labels: int) -> list[int]:
    """Labels of a pattern from its code, the oldest first."""
    return [code // n_labels**i % n_labels for i in range(length - 1, -1, -1)]
