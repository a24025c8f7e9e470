"""The training problem of sentences: chains of labels, whose parts are tag patterns.

A part of kind k is a tag pattern of length k, and its assignment the base-L number of the pattern (oldest label most
significant).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from vcrf import kernels
from vcrf.errors import BudgetError, InputError
from vcrf.families.columns import read_columns
from vcrf.families.family import Family, Source
from vcrf.families.keys import partitions
from vcrf.families.text import Text
from vcrf.graphs.parts import PartSpace
from vcrf.problem.candidates import Candidates, family_table
from vcrf.problem.components import Components
from vcrf.problem.known_labels import KnownLabels
from vcrf.problem.label_sets import AllowedLabels
from vcrf.types import Bools, Floats, Ints, UInts8, UInts32

# A dense lattice needs a table of n_labels**order arcs.
MAX_ARCS = 50_000_000
# Codes of tag patterns are 32 bits.
MAX_PATTERNS = 1 << 32


@dataclass(frozen=True)
class Problem(Candidates):
    """Everything that training needs to know of the data: `Candidates` of sentences, whose kinds are pattern lengths.

    Attributes
    ----------
    allowed : (n_tokens, n_labels) uint8, the labels that each token may have where some are not known; no rows if
        all are. `y` is then one allowed sequence
    min_count : pairs of a column and a pattern whose values sum up to less in training are not observed
    known : the labels that frequent words may have, in all sequences that are summed over; None: all may have all
    components : what labels have in common, if there are families on it: the kind of its values comes after those of
        patterns, and then one for the pairs of values of each component that has them
    """

    allowed: UInts8 = field(default_factory=lambda: np.zeros((0, 0), np.uint8))
    min_count: float = 0.0
    components: Components | None = None
    known: KnownLabels | None = None

    @cached_property
    def possible(self) -> AllowedLabels | None:
        """The labels that tokens may have, if not all may have all."""
        return None if self.known is None else self.known.sets(self.text)

    @property
    def is_partial(self) -> bool:
        """Whether some labels are not known."""
        return len(self.allowed) > 0

    @cached_property
    def partial_sentences(self) -> Bools:
        """Sentences in which some label is not known, (n_sentences,)."""
        if not self.is_partial:
            return np.zeros(self.text.n_sentences, bool)
        open_tokens = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.allowed.sum(axis=1) > 1)])
        return np.asarray(open_tokens[self.sent_ptr[1:]] > open_tokens[self.sent_ptr[:-1]])

    @property
    def sent_ptr(self) -> Ints:
        return self.text.sent_ptr

    @property
    def n_tokens(self) -> int:
        return len(self.y)

    @property
    def n_instances(self) -> int:
        return self.n_tokens

    @cached_property
    def space(self) -> PartSpace:
        """Tag patterns of lengths 1 .. order, component values, and pairs of these."""
        patterns = tuple(self.n_labels**k for k in range(1, self.order + 1))
        found = self.components
        return PartSpace(patterns if found is None else (*patterns, len(found), *found.pair_sizes))

    @cached_property
    def order(self) -> int:
        """The longest tag pattern."""
        n_kinds = int(self.family_of.shape[1]) - 1
        return n_kinds if self.components is None else n_kinds - 1 - len(self.components.pairs)

    @property
    def pair_kinds(self) -> range:
        """The kinds of pairs of component values, in the order of `components.pairs`."""
        return range(self.order + 2, len(self.space.sizes) + 1)

    @property
    def component_kind(self) -> int:
        """The kind of component values, 0 if there are none."""
        return 0 if self.components is None else self.order + 1

    def part_sizes(self, kinds: UInts32) -> Ints:
        """Labels of a part of each kind."""
        of_components = np.where(kinds == self.order + 1, 1, 2)
        return np.where(kinds > self.order, of_components, kinds.astype(np.int64))

    def paper_complexities(self) -> Floats:
        """Families on components have attributes x component values, or pairs of values of one component."""
        if self.components is None:
            return super().paper_complexities()
        of_pairs = dict(zip(self.components.pairs, map(len, self.components.pair_values), strict=True))
        sizes = []
        for family in self.families:
            n_assignments = of_pairs.get(family.component, len(self.components))
            sizes.append(family.log_cardinality(self.text, n_assignments if family.on_components else self.n_labels))
        return np.sqrt(2.0 * np.array(sizes, np.float64) / max(self.text.n_sentences, 1))

    @cached_property
    def starts(self) -> Ints:
        """First position of the sentence of each position, (n_tokens,)."""
        return np.repeat(self.sent_ptr[:-1], np.diff(self.sent_ptr))

    @cached_property
    def example_of(self) -> Ints:
        """The sentence of each token."""
        return np.repeat(np.arange(self.text.n_sentences), np.diff(self.sent_ptr))

    def n_parts(self, kind: int) -> Ints:
        return np.asarray(np.maximum(np.diff(self.sent_ptr) - self._size_of(kind) + 1, 0))

    def has_part(self, kind: int) -> Bools:
        """Positions that so many labels can end at."""
        return np.asarray(np.arange(self.n_tokens) - self.starts + 1 >= self._size_of(kind))

    def _size_of(self, kind: int) -> int:
        return int(self.part_sizes(np.array([kind], np.uint32))[0])

    @property
    def log_outputs(self) -> float:
        return int(np.diff(self.sent_ptr).max(initial=0)) * math.log(self.n_labels)

    @cached_property
    def token_weights(self) -> Floats:
        return self.weights[self.example_of]

    def deep_weights(self, order: int) -> Floats:
        """Weight of each token that has order - 1 tokens before it in its sentence, else 0."""
        depth = np.arange(self.n_tokens) - self.starts + 1
        return np.where(depth >= order, self.token_weights, 0.0)

    @cached_property
    def partitions(self) -> list[UInts32]:
        return partitions(self.text, self.sources)

    @cached_property
    def bias_column(self) -> int:
        """The column that occurs everywhere with value 1, or -1."""
        full = np.flatnonzero(np.diff(self.columns.ptr) == self.n_tokens)
        for c in full:
            values = self.columns.values[self.columns.ptr[c] : self.columns.ptr[c + 1]]
            if np.all(values == 1.0):
                return int(c)
        return -1

    def observed(self, kind: int) -> Ints:
        """Sorted column * L**k + code of the pairs (column, pattern of length k) seen in training.

        An attribute given with value 0 counts as seen with its label, as it does in CRFsuite.
        """
        if kind not in self._observed:
            self._observed[kind] = self._find_observed(kind)
        return self._observed[kind]

    @cached_property
    def _observed(self) -> dict[int, Ints]:
        return {}

    def _find_observed(self, k: int) -> Ints:
        if self.components is not None and k >= self.component_kind:
            return self._observed_values() if k == self.component_kind else self._observed_pairs(k)
        if self.min_count > 0.0:
            return self._frequent(k)
        out = np.empty(len(self.columns.positions), np.int64)
        n = kernels.gradient.observed_codes(
            self.columns.ptr, self.columns.positions, self.starts, self.y, k, self.n_labels, self.has_order(k), out
        )
        columns, positions = self.columns.zeros
        if k > 1 or len(columns) == 0:
            return np.unique(out[:n])
        zeros = columns * self.n_labels + self.y[positions]
        return np.union1d(out[:n], zeros[self.has_order(1)[columns]])

    def _observed_values(self) -> Ints:
        """Pairs of a column and a component value: those of the labels that the column was seen with, 0 counts too."""
        columns = np.repeat(np.arange(len(self.columns)), np.diff(self.columns.ptr))
        labels = self.y[self.columns.positions].astype(np.int64)
        if self.min_count <= 0.0:
            more, positions = self.columns.zeros
            columns, labels = np.append(columns, more), np.append(labels, self.y[positions].astype(np.int64))
            return np.unique(self._pairs_of_values(columns, labels)[0])
        sizes = self.columns.values if len(self.columns.values) else np.ones(len(columns))
        found, index = self._pairs_of_values(columns, labels)
        pairs, inverse = np.unique(found, return_inverse=True)
        return np.asarray(pairs[np.bincount(inverse, sizes[index], len(pairs)) >= self.min_count])

    def _observed_pairs(self, k: int) -> Ints:
        """Pairs of the values of a component that stand next to each other, with the bias, often enough."""
        if self.components is None or self.bias_column < 0:
            return np.zeros(0, np.int64)
        which = k - self.component_kind - 1
        value, n = self.components.value_of[which][self.y], len(self.components.pair_values[which])
        second = np.flatnonzero(self.has_part(k))
        second = second[(value[second - 1] >= 0) & (value[second] >= 0)]
        codes, counts = np.unique(value[second - 1] * n + value[second], return_counts=True)
        return np.asarray(self.bias_column * self.space.size(k) + codes[counts >= self.min_count])

    def _pairs_of_values(self, columns: Ints, labels: Ints) -> tuple[Ints, Ints]:
        """Pairs column * n_values + value of the labels, of columns with families on components; and whose each is."""
        if self.components is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        kept = np.flatnonzero(self.has_order(self.component_kind)[columns])
        ptr, values = self.components.by_label
        counts, first = np.diff(ptr)[labels[kept]], ptr[labels[kept]]
        place = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        index = np.repeat(kept, counts)
        return columns[index] * len(self.components) + values[place], index

    def _frequent(self, k: int) -> Ints:
        """The pairs whose values, summed over all places where they occur, reach min_count."""
        columns = np.repeat(np.arange(len(self.columns)), np.diff(self.columns.ptr))
        positions = self.columns.positions.astype(np.int64)
        kept = self.has_order(k)[columns] & (positions - self.starts[positions] >= k - 1)
        codes = columns[kept]
        for i in range(k - 1, -1, -1):
            codes = codes * self.n_labels + self.y[positions[kept] - i]
        pairs, inverse = np.unique(codes, return_inverse=True)
        values = self.columns.values[kept] if len(self.columns.values) else None
        return np.asarray(pairs[np.bincount(inverse, values, len(pairs)) >= self.min_count])


def build_problem(
    text: Text,
    y: UInts32,
    n_labels: int,
    families: Sequence[Family],
    *,
    weights: Floats | None = None,
    candidates: str | tuple[str, str] = "all",
    merge_twins: bool | str = True,
    allowed: UInts8 | None = None,
    min_count: float = 0.0,
    components: Components | None = None,
    known: KnownLabels | None = None,
) -> Problem:
    """Read the families' attributes off the text and merge twins.

    `weights` are the sentences' weights in the mean (1/m each by default). `candidates` is "all" or "observed",
    or a pair of these: for single labels and for longer tag patterns. `allowed` (n_tokens, n_labels) marks the labels
    that a token may have, if not all are known; `y` must be allowed. `min_count` is for observed candidates: the least
    sum of values, over the training text, of a pair that counts as observed. `merge_twins` "families" merges those of
    the same families alone, which have the same strengths. `components` are for families on them. `known` restricts the
    labels of frequent words: where `allowed` leaves some open, y is changed to one that both allow.
    """
    families = list(families)
    both = (candidates, candidates) if isinstance(candidates, str) else tuple(candidates)
    if len(both) != 2 or any(choice not in ("all", "observed") for choice in both):
        raise InputError(f"`candidates` must be 'all' or 'observed' (or a pair of these), got {candidates!r}.")
    if not families:
        raise InputError("A model needs at least one family of features, got none.")
    if len(y) != text.n_tokens or (len(y) and int(y.max()) >= n_labels):
        raise InputError(f"Expected {text.n_tokens} labels below {n_labels}, got {len(y)} up to {y.max(initial=0)}.")
    if allowed is None or np.all(allowed.sum(axis=1) == 1):
        allowed = np.zeros((0, 0), np.uint8)
    else:
        _check_allowed(allowed, y, n_labels, both)
    if weights is not None and weights.shape != (text.n_sentences,):
        raise InputError(f"Expected one weight for each of {text.n_sentences} sentences, got {weights.shape}.")
    sources: list[Source] = list(dict.fromkeys(source for family in families for source in family.sources))
    order = max(family.tags for family in families)
    check_order(n_labels, order)
    components = _components_of(families, components)
    if weights is None:
        weights = np.full(text.n_sentences, 1.0 / max(text.n_sentences, 1))
    kinds = [_kind_of(family, order, components) for family in families]
    n_kinds = order if components is None else order + 1 + len(components.pairs)
    table = family_table(families, sources, n_kinds, kinds)
    sorts = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1).tolist() if merge_twins == "families" else None
    columns = read_columns(text, sources, bool(merge_twins), with_zeros=both[0] == "observed", sorts=sorts)
    problem = Problem(
        text, y, n_labels, families, sources, table, columns, weights, both, allowed, min_count, components, known
    )  # fmt: skip
    _check_pairs(problem)
    if known is not None:
        _check_known(problem)
        problem = replace(problem, y=_possible_labels(problem))
    return problem


def _components_of(families: list[Family], components: Components | None) -> Components | None:
    """The components that families are on, with pairs in the order of their families."""
    pairs = tuple(family.component for family in families if family.component)
    if not any(family.on_components for family in families):
        return None
    if components is None:
        raise InputError("Families on components need labels that have some: pass `components`.")
    return replace(components, pairs=pairs)


def _kind_of(family: Family, order: int, components: Components | None) -> int:
    if components is None or not family.on_components:
        return family.tags
    return order + 2 + components.pairs.index(family.component) if family.component else order + 1


def _check_pairs(problem: Problem) -> None:
    """Pairs of component values are those of all words."""
    if problem.order > 2 and len(problem.pair_kinds):
        raise InputError(
            f"Pairs of component values go with tag patterns of two labels at the most, got {problem.order}: lower "
            "`tags`, or leave `component_pairs` out."
        )
    for kind in problem.pair_kinds:
        if np.any(np.flatnonzero(problem.has_order(kind)) != problem.bias_column):
            raise InputError(
                "Pairs of component values are of all words alone: expected the bias as the source of their families "
                "and twins merged. Pairs with words are there for whole labels."
            )


def _check_known(problem: Problem) -> None:
    """Known labels are for passes over pairs of all words."""
    is_plain = np.all(np.flatnonzero(problem.has_order(2)) == problem.bias_column) if problem.order > 1 else True
    if problem.order > 2 or not is_plain:
        raise InputError(
            "`known_labels` go with tag patterns of two labels at the most, and without words in pairs: lower `tags`, "
            "use `families='default'`, or leave `known_labels` out."
        )


def _possible_labels(problem: Problem) -> UInts32:
    """One possible sequence: y, but for open tokens whose label in y the word cannot have."""
    possible, y = problem.known.sets(problem.text) if problem.known is not None else None, problem.y.copy()
    if possible is None:
        return y
    for t in np.flatnonzero(~possible.mask[possible.of_token, y]).tolist():
        here = possible.mask[possible.of_token[t]]
        both = np.flatnonzero(here & (problem.allowed[t] > 0)) if problem.is_partial else np.zeros(0, np.int64)
        if not len(both):
            raise InputError(f"Token {t} of the text has a label that its word cannot have by `known`.")
        y[t] = both[0]
    return y


def _check_allowed(allowed: UInts8, y: UInts32, n_labels: int, candidates: tuple[str, ...]) -> None:
    if allowed.shape != (len(y), n_labels) or not np.all(allowed[np.arange(len(y)), y] == 1):
        raise InputError(f"`allowed` must be ({len(y)}, {n_labels}) and allow every label in y.")
    if "observed" in candidates:
        raise InputError("`candidates='observed'` needs the label of every token: use `candidates='all'`.")


def check_order(n_labels: int, order: int) -> None:
    """Refuse more tag patterns than there are codes."""
    if n_labels**order > MAX_PATTERNS:
        raise BudgetError(
            f"There are {n_labels**order:,} tag patterns of length {order} over {n_labels} labels; the budget is "
            f"{MAX_PATTERNS:,}. Lower `tags` (now {order}) or use fewer labels."
        )
