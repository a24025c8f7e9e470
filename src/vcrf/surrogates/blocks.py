"""The crf surrogate of a gathered problem: what the solver needs to know of it, and the loss of a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vcrf.cluster import Runner, same
from vcrf.errors import InputError
from vcrf.families.counting import Attributes, block_columns
from vcrf.losses import Loss
from vcrf.problem.gathered import BlockData, BlockShape, Gathered, block_problem, shape_of
from vcrf.structures.block import ChainBlock
from vcrf.structures.blocks import Blocks
from vcrf.structures.chain import check_lattice
from vcrf.structures.training_loss import TrainingLoss
from vcrf.surrogates.choice import choose
from vcrf.surrogates.outer import Mean
from vcrf.surrogates.smooth import SmoothObjective
from vcrf.types import Bools, Floats, Ints, Label


@dataclass(frozen=True, eq=False)
class BlocksChoice:
    """The surrogate, ready to be built for a problem.

    Attributes
    ----------
    loss : of sentences; a cost of each wrong label
    labels : by number
    data, attributes : tasks for each block, its sentences and their attributes
    answers : for each block tasks for the columns of its attributes, by range of hashes
    """

    loss: Loss | None
    labels: list[Label]
    runner: Runner
    data: list[Any]
    attributes: list[Any]
    answers: list[list[Any]]

    def mass(self, problem: Gathered) -> Floats:
        """Largest |gradient| that a feature of each column can have."""
        return problem.column_mass

    def build(self, problem: Gathered, keep: Bools, threads: int = 1, lattice: str = "auto") -> SmoothObjective:  # noqa: ARG002
        """The objective."""
        check_lattice(lattice)
        shape = self.runner.submit(same, shape_of(problem, self.labels, keep))
        blocks = [
            self.runner.submit(make_block, data, attributes, answers, shape, self.loss)
            for data, attributes, answers in zip(self.data, self.attributes, self.answers, strict=True)
        ]
        # What blocks are made of is asked for no more: workers let it go, and make it again where a block is lost.
        self.attributes.clear()
        self.answers.clear()
        n = len(blocks)
        # A block is an example, and has the loss of its sentences with it.
        return SmoothObjective(
            Blocks(problem, keep, self.runner, blocks), Mean(), TrainingLoss(np.zeros(n)), np.ones(n),
            self.mass(problem),
        )  # fmt: skip


def make_block(
    data: BlockData, attributes: Attributes, answers: Sequence[Ints], shape: BlockShape, loss: Loss | None
) -> ChainBlock:
    """A block with its columns."""
    numbers, columns = block_columns(
        data.text, shape.sources, attributes, answers, shape.classes, shape.class_sources
    )  # fmt: skip
    problem = block_problem(data, shape, numbers, columns)
    found = choose(problem, "crf", loss).loss
    if found.automata is not None:
        raise InputError(
            "`loss`: on a cluster only Hamming losses, or none, are there: others need an automaton of each sentence. "
            "Use loss='hamming' or None, or train on one machine."
        )
    return ChainBlock(problem, numbers, shape.is_shared[numbers], found)
