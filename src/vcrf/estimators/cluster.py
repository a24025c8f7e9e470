"""Training on the workers of a cluster: from blocks of sentences to a problem, and from its solution to a model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from vcrf.arguments.inputs import check_characters, label_numbers, read_text, sorted_classes, training_sentences
from vcrf.classes import as_classes
from vcrf.cluster import Runner, same, shuffle
from vcrf.complexity.choices import check_complexities, family_complexities
from vcrf.data.corpus import Sentence
from vcrf.data.interned import InternedCorpus
from vcrf.data.parts import n_parts
from vcrf.decoding.constraints import check_constraints
from vcrf.errors import InputError
from vcrf.estimators.checkpoint import Checkpoint
from vcrf.estimators.parameters import TrainingData
from vcrf.families import Family, Template, Text, class_families
from vcrf.families.counting import (
    Columns,
    attributes_of,
    by_hash,
    by_signature,
    count_sources,
    joined,
    look_up,
    merge,
    merge_twins,
    number_columns,
    numbers_of_rows,
)
from vcrf.families.explicit import AttributeText
from vcrf.model import Model
from vcrf.model.build import build_model
from vcrf.model.fingerprints import fingerprints
from vcrf.penalties.separable import BoundPenalty
from vcrf.problem.gathered import BlockData, BlockFacts, Gathered, Vocabulary, facts_of, gather
from vcrf.solvers.result import SolverResult, Status
from vcrf.surrogates.blocks import BlocksChoice
from vcrf.types import Floats, Ints, Label, UInts64

if TYPE_CHECKING:
    from vcrf.estimators.vcrf import VCRF

# Tokens of a block of sentences that are given, about.
TOKENS = 1 << 15
# Blocks to a range in which attributes meet.
_BLOCKS_PER_RANGE = 4


class Part(Protocol):
    """Where a block of sentences is read."""

    def sentences(self) -> Iterator[Sentence]:
        """Sentences with their labels."""


class Read(NamedTuple):
    """All blocks, read on workers: tasks for their sentences, what is known of each, and of all."""

    data: list[Any]
    facts: list[BlockFacts]
    vocabulary: Vocabulary
    labels: list[Label]

    @property
    def offsets(self) -> Ints:
        """First token of each block, and the number of all."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum([fact.n_tokens for fact in self.facts])])

    @property
    def digest(self) -> str:
        """SHA-256 of what the blocks have, in their order."""
        return hashlib.sha256(b"".join(fact.digest for fact in self.facts)).hexdigest()


class Counted(NamedTuple):
    """All attributes, as tasks: those of each block, and their columns by range of hashes."""

    problem: Gathered
    attributes: list[Any]
    answers: list[list[Any]]


# ----- the estimator


def fit_on_cluster(
    tagger: VCRF, X: Any, y: Any, runner: Runner, checkpoint: str | os.PathLike[str] | None, given: dict[str, Any]
) -> VCRF:
    """Train on sentences that are given; `given` are the arguments of `fit` that a cluster does not know."""
    for name, value in given.items():
        if value is not None:
            raise _refused(f"`{name}`", "is not there: it would have to go with each block")
    check_estimator(tagger)
    return fit_blocks(tagger, blocks_of_sentences(X, y), runner, checkpoint)


def fit_blocks(
    tagger: VCRF, blocks: Sequence[BlockData | Part], runner: Runner, checkpoint: str | os.PathLike[str] | None = None
) -> VCRF:
    """Train on blocks of sentences. The file of checkpoints is removed when the gap is closed."""
    check_estimator(tagger)
    read = read_blocks(runner, blocks)
    if tagger.constraints is not None:
        check_constraints(tagger.constraints, read.labels)
    check_characters(read.vocabulary, read.labels)
    families = _families(tagger, read)
    nothing: Any = _without_columns(read, families)
    complexities = family_complexities(tagger.complexities, nothing, tagger._form()["norm"])
    data = TrainingData(nothing, read.labels, complexities, None, None)
    strengths = tagger._penalty(data).l1
    counted = count(runner, read, families, float(strengths.min(initial=np.inf)))
    choice = BlocksChoice(
        tagger._loss(read.labels), read.labels, runner, read.data, counted.attributes, counted.answers
    )  # fmt: skip
    problem: Any = counted.problem
    data = data._replace(problem=problem, surrogate=choice, build=partial(model_of, runner, read))
    if checkpoint is None:
        return tagger._solve(data, None)
    watch = Checkpoint(checkpoint, _digest(read, counted.problem))
    fitted = tagger._solve(data, watch.start(), watch=watch)
    if fitted.status_ is Status.CONVERGED:
        watch.remove()
    return fitted


def check_estimator(tagger: VCRF) -> None:
    """Refuse, each by its name, what is not there on a cluster."""
    norm = tagger._form()["norm"]
    if tagger._kind != "crf":
        raise _refused(f"`surrogate='{tagger._kind}'`", "is not there: its value is no sum over blocks")
    if tagger.solver != "certified":
        raise _refused(f"`solver='{tagger.solver}'`", "is not there: its steps follow each other")
    if norm in ("lp", "family"):
        raise _refused(f"`norm='{norm}'`", "is not there: its scans keep all candidates")
    if tagger.norms is not None or tagger.radius is not None:
        name = "norms" if tagger.norms is not None else "radius"
        raise _refused(f"`{name}`", "is not there")
    if norm == "group":
        raise _refused("`norm='group'`", "is not there: its scan needs the norms of whole columns")
    if tagger.candidates != "all":
        raise _refused("`candidates='observed'`", "is not there: pairs would have to be counted too")
    if isinstance(tagger.complexities, str) and tagger.complexities != "paper":
        raise _refused(f"`complexities='{tagger.complexities}'`", "is not there: it is counted at all tokens")
    if tagger.inference == "patterns":
        raise _refused("`inference='patterns'`", "is not there: its scans leave out what one block cannot judge")
    for name in ("components", "component_pairs", "known_labels", "patience", "memory"):
        if getattr(tagger, name) is not None:
            raise _refused(f"`{name}`", "is not there")


def _refused(what: str, why: str) -> InputError:
    return InputError(f"On a cluster {what} {why}. Leave it out, or train on one machine.")


def _families(tagger: VCRF, read: Read) -> list[Family]:
    families = tagger._families(read.vocabulary)
    table = as_classes(tagger.word_classes)
    if table is not None:
        families += class_families(table)
    check_sources(families)
    check_complexities(tagger.complexities, families)
    if any(family.tags > 2 or family.on_components for family in families):
        raise _refused("`tags` above 2", "are not there: a scan would send every pattern of every column")
    return families


def _without_columns(read: Read, families: list[Family]) -> Gathered:
    """The problem before its columns are counted: enough for strengths."""
    none = np.zeros(0, np.int64)
    sources = list(dict.fromkeys(source for family in families for source in family.sources))
    columns = Columns(none, none, none, none, none, [], none)
    return gather(read.vocabulary, len(read.labels), 0, families, sources, columns, np.zeros(len(sources), np.int64))


def _digest(read: Read, problem: Gathered) -> str:
    """Of everything that the numbers of features depend on."""
    names = [source.name for source in problem.sources]
    table = problem.columns
    digest = hashlib.sha256(f"{read.digest} {read.labels} {names} {problem.space.sizes}".encode())
    for array in (table.ptr, table.first, table.classes):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


# ----- sentences


def blocks_of_sentences(X: Any, y: Any, of_block: int = TOKENS) -> list[BlockData]:
    """Sentences that are given, in blocks whose number is a power of two and follows from the tokens alone."""
    sentences, labels, _ = training_sentences(X, y, may_be_open=True)
    if not all(isinstance(label, (str, int, np.integer)) for label in chain.from_iterable(labels)):
        raise InputError("A cluster trains on sentences whose labels are all known: some of y are open.")
    ends = np.cumsum(np.fromiter(map(len, sentences), np.int64, len(sentences)))
    total = int(ends[-1])
    n = n_parts(total, max(of_block, 1))
    cuts = np.unique([0, *np.searchsorted(ends, total * np.arange(1, n) // n) + 1, len(sentences)]).tolist()
    return [_block(sentences[a:b], labels[a:b]) for a, b in pairwise(cuts) if b > a]


def _block(sentences: Sequence[Any], labels: Any) -> BlockData:
    text = read_text(sentences)
    if isinstance(text, AttributeText):
        raise InputError("A cluster trains on tokens that are str: with given attributes train on one machine.")
    classes = sorted_classes(labels)
    return BlockData(text, label_numbers(labels, classes), classes)


def read_part(part: Part) -> BlockData:
    """The sentences of a part of a file."""
    corpus = InternedCorpus.from_sentences(part.sentences())
    labels: list[Label] = list(corpus.labels.strings)
    return BlockData(Text(corpus.tokens.ptr, corpus.tokens.strings, corpus.tokens.ids), corpus.labels.ids, labels)


def read_blocks(runner: Runner, blocks: Sequence[BlockData | Part]) -> Read:
    """Have all blocks read; those that have no sentence count no more."""
    tasks = [runner.submit(same if isinstance(block, BlockData) else read_part, block) for block in blocks]
    facts: list[BlockFacts] = runner.gather([runner.submit(facts_of, task) for task in tasks])
    kept = [i for i, fact in enumerate(facts) if fact.n_sentences]
    tasks, facts = [tasks[i] for i in kept], [facts[i] for i in kept]
    if not facts:
        raise InputError("Training needs at least one sentence with a token: got none. Check the files and `split`.")
    words = list(dict.fromkeys(chain.from_iterable(fact.words for fact in facts)))
    labels = sorted_classes([[label for fact in facts for label in fact.labels]])
    counts = sum(fact.n_sentences for fact in facts), sum(fact.n_tokens for fact in facts)
    vocabulary = Vocabulary(words, counts, np.zeros(1, np.int64), np.zeros(0, np.uint32))
    return Read(tasks, [fact._replace(words=[], labels=[]) for fact in facts], vocabulary, labels)


# ----- columns


def check_sources(families: Sequence[Family]) -> None:
    """Refuse families that do not read words."""
    for family in families:
        for source in family.sources:
            if not isinstance(source, Template):
                raise InputError(f"A cluster reads templates of words alone: {source.name!r} is another feature.")


def count(runner: Runner, read: Read, families: list[Family], least_mass: float) -> Counted:
    """Count all attributes and merge twins; columns of no more than so much mass stay at zero, and are left out."""
    sources = list(dict.fromkeys(source for family in families for source in family.sources))
    n = 1 + (len(read.data) - 1) // _BLOCKS_PER_RANGE
    offsets = read.offsets[:-1].tolist()
    attributes = [
        runner.submit(attributes_of, data, sources, offset)
        for data, offset in zip([runner.submit(_text_of, data) for data in read.data], offsets, strict=True)
    ]
    asked = shuffle(runner, [runner.submit(by_hash, rows, n) for rows in attributes], n)
    rows = [runner.submit(merge, parts) for parts in asked]
    of_rows = [runner.submit(by_signature, part, n) for part in rows]
    signed = shuffle(runner, of_rows, n)
    m = read.vocabulary.n_sentences
    # Ties are left to count screening.
    least = int(np.ceil(least_mass * m * (1.0 - 1e-9))) if np.isfinite(least_mass) else 1
    merged = [runner.submit(merge_twins, parts, least) for parts in signed]
    found = runner.gather([runner.submit(_first, task) for task in merged])
    n_attributes = sum(runner.gather([runner.submit(count_sources, part, len(sources)) for part in rows]))
    columns, numbers = number_columns(found)
    runner.n_bytes += sum(array.nbytes for part in found for array in (part.sources, part.first, part.counts))
    back = shuffle(
        runner,
        [
            runner.submit(numbers_of_rows, runner.submit(_second, task), own, parts)
            for task, own, parts in zip(merged, numbers, signed, strict=True)
        ],
        n,
    )
    of_range = [runner.submit(joined, part, parts) for part, parts in zip(rows, back, strict=True)]
    answers = [
        [runner.submit(look_up, rows[p], of_range[p], asked[p][b]) for p in range(n)] for b in range(len(read.data))
    ]
    longest = max(fact.longest for fact in read.facts)
    problem = gather(read.vocabulary, len(read.labels), longest, families, sources, columns, n_attributes)
    return Counted(problem, attributes, answers)


def _text_of(data: BlockData) -> Text:
    return data.text


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


# ----- the model


def model_of(
    runner: Runner, read: Read, problem: Gathered, penalty: BoundPenalty, result: SolverResult, labels: list[Label],
    complexities: Floats, temperature: float,
) -> Model:  # fmt: skip
    """The model; the sentences where its attributes occur first are asked for, to name them."""
    columns = np.unique(problem.split_features(result.features)[0]).astype(np.int64)
    named = _with_sentences(runner, read, problem, columns)
    model = build_model(named, penalty, result, labels, complexities, temperature)
    seen: list[UInts64] = runner.gather([runner.submit(_fingerprints, data) for data in read.data])
    facts = model.facts
    if facts is not None:
        facts = replace(facts, data_checksum=read.digest)
    return replace(model, facts=facts, sentences=np.sort(np.concatenate(seen)))


def _with_sentences(runner: Runner, read: Read, problem: Gathered, columns: Ints) -> Gathered:
    """The problem with the sentences that some columns occur first in, and their first positions there."""
    first = problem.columns.first[columns]
    order = np.argsort(first, kind="stable")
    offsets = read.offsets
    of_block = np.searchsorted(offsets, first[order], side="right") - 1
    tasks = [
        runner.submit(_sentences_at, read.data[b], first[order][of_block == b] - offsets[b])
        for b in np.unique(of_block).tolist()
    ]
    sentences: list[list[str]] = []
    where = [np.zeros(0, np.int64)]
    n_tokens = 0
    for listed, at in runner.gather(tasks):
        where.append(at + n_tokens)
        sentences += listed
        n_tokens += sum(map(len, listed))
    moved = problem.columns.first.copy()
    moved[columns[order]] = np.concatenate(where)
    text = read.vocabulary.of_sentences(sentences)
    return replace(problem, text=text, columns=replace(problem.columns, first=moved))


def _sentences_at(data: BlockData, positions: Ints) -> tuple[list[list[str]], Ints]:
    """The sentences of some positions (sorted), each once, and where the positions are in them."""
    ptr, words = data.text.sent_ptr, data.text.words
    sentence = np.searchsorted(ptr, positions, side="right") - 1
    chosen, which = np.unique(sentence, return_inverse=True)
    lengths = ptr[chosen + 1] - ptr[chosen]
    begins = np.cumsum(lengths) - lengths
    listed = [[words[i] for i in data.text.word_ids[ptr[s] : ptr[s + 1]].tolist()] for s in chosen.tolist()]
    return listed, begins[which.reshape(-1)] + positions - ptr[sentence]


def _fingerprints(data: BlockData) -> UInts64:
    return fingerprints(data.text)
