"""From the solution of a training problem to a model: weights of merged columns shared out, attributes named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vcrf.families.explicit import AttributeText, NamedFeature
from vcrf.families.templates import Template
from vcrf.families.text import Text
from vcrf.model.facts import training_facts
from vcrf.model.fingerprints import fingerprints
from vcrf.model.model import FamilyFacts, Model
from vcrf.penalties import SharedPenalty
from vcrf.problem import Candidates, Problem
from vcrf.solvers.result import SolverResult
from vcrf.types import Floats, Ints, Label, UInts32, UInts64


def build_model(
    problem: Candidates,
    penalty: SharedPenalty,
    result: SolverResult,
    labels: Sequence[Label],
    complexities: Floats | None = None,
    temperature: float = 1.0,
) -> Model:
    """Split the weights of merged columns among their attributes, and name those.

    Parameters
    ----------
    problem, penalty, result : what was solved, and its solution
    labels : the labels by number
    complexities : (n_families,) r_k for the families' facts; by default the paper's
    temperature : what all weights are divided by
    """
    entries = split_features(problem, penalty, result.features, result.weights)
    entries = entries._replace(weights=entries.weights / temperature)
    sources = [_source_rows(problem, s, entries.of_source(s)) for s in range(len(problem.sources))]
    counts = np.concatenate([np.zeros(0, np.int64), *(rows.counts for rows in sources)])
    return Model(
        labels=list(labels),
        sources=list(problem.sources),
        family_of=problem.family_of,
        families=_family_facts(problem, penalty, entries, complexities),
        source_ptr=np.concatenate([[0], np.cumsum([len(rows.keys) for rows in sources])]).astype(np.int64),
        keys=np.concatenate([np.zeros(0, np.uint64), *(rows.keys for rows in sources)]),
        names=[name for rows in sources for name in rows.names],
        ptr=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        lengths=np.concatenate([np.zeros(0, np.uint32), *(rows.lengths for rows in sources)]),
        codes=np.concatenate([np.zeros(0, np.uint32), *(rows.codes for rows in sources)]),
        weights=np.concatenate([np.zeros(0), *(rows.weights for rows in sources)]),
        facts=training_facts(problem, result, labels),
        vocabulary=_vocabulary(problem.text),
        sentences=fingerprints(problem.text) if isinstance(problem, Problem) else np.zeros(0, np.uint64),
        components=problem.components if isinstance(problem, Problem) else None,
        known=problem.known if isinstance(problem, Problem) else None,
    )


def _vocabulary(text: Text) -> UInts64:
    is_given = isinstance(text, AttributeText)
    return np.zeros(0, np.uint64) if is_given else np.sort(text.reading("word")[:-1])


class Entries(NamedTuple):
    """Weights of single attributes: the source, the column it was merged into, pattern and weight."""

    sources: Ints
    columns: Ints
    lengths: UInts32
    codes: UInts32
    weights: Floats

    def of_source(self, source: int) -> Entries:
        # Entries are sorted by source.
        first, last = np.searchsorted(self.sources, [source, source + 1])
        kept = slice(first, last)
        return Entries(self.sources[kept], self.columns[kept], self.lengths[kept], self.codes[kept], self.weights[kept])


class _SourceRows(NamedTuple):
    """Attributes of one source with their entries; `counts` is the number of entries of each."""

    keys: UInts64
    names: list[str]
    counts: Ints
    lengths: UInts32
    codes: UInts32
    weights: Floats


def split_features(problem: Candidates, penalty: SharedPenalty, features: Ints, w: Floats) -> Entries:
    """Weights of merged features as weights of their attributes, sorted by source."""
    columns, lengths, codes = problem.split_features(features)
    groups = penalty.groups_of(features)
    feature, member, weights = penalty.split(groups, w)
    sources = penalty.member_sources[member]
    order = np.argsort(sources, kind="stable")
    feature = feature[order]
    return Entries(sources[order], columns[feature].astype(np.int64), lengths[feature], codes[feature], weights[order])


def _source_rows(problem: Candidates, source: int, entries: Entries) -> _SourceRows:
    # Features are sorted by column and then by pattern, and so are the entries of one source.
    columns, first = np.unique(entries.columns, return_index=True)
    counts = np.diff(np.append(first, len(entries.columns)))
    keys = keys_of_columns(problem, source, columns)
    names = _names(problem, source, columns, keys)
    return _SourceRows(keys, names, counts, entries.lengths, entries.codes, entries.weights)


def keys_of_columns(problem: Candidates, source: int, columns: Ints) -> UInts64:
    """Key of the attribute that a source has in each column."""
    if len(columns) == 0:
        return np.zeros(0, np.uint64)
    if source in problem.columns.listed:
        listed, keys = problem.columns.listed[source]
        order = np.argsort(listed)
        return keys[order[np.searchsorted(listed, columns, sorter=order)]]
    found = problem.sources[source].read(problem.text)
    return found.keys[np.searchsorted(found.positions, problem.columns.first_positions[columns])]


def _names(problem: Candidates, source: int, columns: Ints, keys: UInts64) -> list[str]:
    text = problem.text
    if isinstance(problem.sources[source], NamedFeature) and isinstance(text, AttributeText):
        order = np.argsort(text.keys())
        return [text.names[i] for i in order[np.searchsorted(text.keys(), keys, sorter=order)]]
    positions, read = problem.columns.first_positions[columns], problem.sources[source]
    if isinstance(read, Template):
        return read.describe_each(text, positions.astype(np.int64))
    return [read.describe(text, position) for position in positions.tolist()]


def _family_facts(
    problem: Candidates, penalty: SharedPenalty, entries: Entries, complexities: Floats | None
) -> list[FamilyFacts]:
    n = len(problem.families)
    if complexities is None:
        complexities = problem.paper_complexities()
    of_entry = problem.family_of[entries.sources, entries.lengths]
    n_active = np.bincount(of_entry, minlength=n)
    mass = np.bincount(of_entry, np.abs(entries.weights), n)
    n_candidates, n_columns = count_candidates(problem), _count_columns(problem)
    l1, l2 = penalty.family_strengths
    return [
        FamilyFacts(
            family.name, family.tags, float(complexities[f]), float(l1[f]), float(l2[f]),
            int(n_candidates[f]), int(n_columns[f]), int(n_active[f]), float(mass[f]),
        )
        for f, family in enumerate(problem.families)
    ]  # fmt: skip


def _count_columns(problem: Candidates) -> Ints:
    """Columns that have an attribute of each family."""
    counts = np.zeros(len(problem.families), np.int64)
    for sources, n in zip(problem.columns.class_sources, problem.columns.class_counts, strict=True):
        families = np.unique(problem.family_of[list(sources)])
        counts[families[families >= 0]] += n
    return counts


def count_candidates(problem: Candidates) -> Ints:
    """Attributes x tag patterns of each family: all, or those seen in training."""
    counts = np.zeros(len(problem.families), np.int64)
    classes = problem.columns.class_sources
    for k in problem.kinds:
        if problem.observed_for(k):
            columns = problem.observed(k) // problem.space.size(k)
            per_class = np.bincount(problem.columns.classes[columns], minlength=len(classes))
            for sources, n in zip(classes, per_class, strict=True):
                _add_members(counts, problem.family_of[list(sources), k], n)
        else:
            for s, n in enumerate(problem.columns.n_attributes):
                _add_members(counts, problem.family_of[[s], k], n * problem.space.size(k))
    return counts


def _add_members(counts: Ints, families: Ints, n: int) -> None:
    np.add.at(counts, families[families >= 0], n)
