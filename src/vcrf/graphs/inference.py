"""Sums, maxima and draws over many graphs, exact or bounded by blocks, on a few threads."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from vcrf import kernels
from vcrf.errors import BudgetError
from vcrf.graphs.layout import GraphLayout
from vcrf.types import Floats, Ints
from vcrf.workers import Workers, cut

# Fixed, so that results do not depend on the number of threads.
N_BLOCKS = 64
# Of decoding with blocks: temperatures, sweeps there and back at each, and rounds of changing single values.
_TEMPERATURES = (1.0, 0.3, 0.1)
_DECODING_SWEEPS, _CLIMBS = 10, 20
_NOTHING = np.zeros(0)


class BestValues(NamedTuple):
    """Values of all variables; the score of each example, and a bound on the best: they meet where it is proven."""

    y: Ints
    scores: Floats
    bounds: Floats


class GraphInference:
    """Sums and maxima over the graphs of a layout, on a few threads."""

    def __init__(self, layout: GraphLayout, threads: int = 1) -> None:
        self.layout = layout
        self.workers = Workers(threads)
        self.is_exact = bool(layout.is_exact.all())
        work = np.concatenate([[0], np.cumsum(layout.work + 1)])
        self.bounds = cut(work, N_BLOCKS)

    @property
    def n_scores(self) -> int:
        return int(self.layout.score_ptr[-1])

    def no_messages(self) -> Floats:
        """Messages to begin with."""
        return np.zeros(int(self.layout.message_ptr[-1]))

    def _run(self, kernel: Callable[..., object], *arrays: object, only: Sequence[int] | None = None) -> None:
        layout = self.layout
        if only is None:
            self.workers.run(lambda a, b: kernel(layout.shapes, layout.examples, a, b, *arrays), self.bounds)
        else:
            self.workers.run_each(lambda i: kernel(layout.shapes, layout.examples, i, i + 1, *arrays), only)

    def _sums(
        self, scores: Floats, messages: Floats, temperature: float, n_sweeps: int, parts: Floats, agreed: Floats,
        entropies: Floats, only: Sequence[int] | None = None,
    ) -> Floats:  # fmt: skip
        """U of each example; messages are updated, what else is wanted is filled in: see the kernel."""
        out = np.zeros(self.layout.n_examples)
        self._run(
            kernels.graph_sums.sums, scores, messages, temperature, n_sweeps, out, parts, agreed, entropies, only=only
        )
        return out

    def values(
        self, scores: Floats, messages: Floats, n_sweeps: int, temperature: float = 1.0
    ) -> tuple[Floats, Floats]:
        """U of each example at a temperature, and the messages after so many sweeps there and back."""
        new = messages.copy()
        return self._sums(scores, new, temperature, n_sweeps, _NOTHING, _NOTHING, _NOTHING), new

    def marginals(
        self, scores: Floats, messages: Floats, n_sweeps: int, temperature: float = 1.0
    ) -> tuple[Floats, Floats, Floats]:
        """U, marginals of all assignments of parts, and messages."""
        parts, new = np.zeros(self.n_scores), messages.copy()
        return self._sums(scores, new, temperature, n_sweeps, parts, _NOTHING, _NOTHING), parts, new

    def probabilities(self, scores: Floats, n_sweeps: int) -> Floats:
        """Marginals of all assignments of parts that sum to one in each part, whatever the scores.

        Scores beyond 1e10 leave log sums with few digits: shares of what was found sum to one all the same.
        """
        _, parts, _ = self.marginals(scores, self.no_messages(), n_sweeps)
        starts, sizes = self.layout.score_ptr[:-1], np.diff(self.layout.score_ptr)
        totals = np.add.reduceat(parts, starts) if len(starts) else np.zeros(0)
        return np.asarray(parts / np.repeat(totals, sizes))

    def repaired(
        self, scores: Floats, messages: Floats, n_sweeps: int, temperature: float = 1.0
    ) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """The same, marginals on which the blocks agree, and their entropies."""
        new, entropies = messages.copy(), np.zeros(self.layout.n_examples)
        parts, agreed = np.zeros(self.n_scores), np.zeros(self.n_scores)
        out = self._sums(scores, new, temperature, n_sweeps, parts, agreed, entropies)
        return out, parts, new, agreed, entropies

    def picked(self, scores: Floats, loss: Floats) -> tuple[Floats, Floats]:
        """Log of the sum of loss(y) exp(score(y)) of each exact example, and marginals of loss(y) exp(score(y)).

        With E[L] the mean loss under exp(score): log Z + log E[L], and E[L 1] / E[L] = p + dp / E[L], where dp is the
        derivative of the marginals as the scores move along the loss.
        """
        out, parts, _ = self.marginals(scores, self.no_messages(), 0)
        moved = np.zeros(self.n_scores)
        self._run(kernels.graph_tangent.moved_marginals, scores, loss, moved)
        means = self.layout.sums_by_example(loss * parts)
        with np.errstate(divide="ignore"):
            values = out + np.log(means)
        return values, parts + moved / np.maximum(means, 1e-300)[self.layout.example_of_entry]

    def close(self) -> None:
        """End the threads."""
        self.workers.close()

    # ----- the best assignment

    def best(self, scores: Floats) -> BestValues:
        """A best assignment of each example: exact, or the best that was found with a bound."""
        layout = self.layout
        y = np.zeros(len(layout.types), np.int64)
        exact, relaxed = np.flatnonzero(layout.is_exact).tolist(), np.flatnonzero(~layout.is_exact).tolist()
        self.workers.run_each(lambda i: self._assign(scores, i, y), exact)
        found = self.score(scores, y)
        bounds = found.copy()
        if relaxed:
            self._cool(scores, y, found, bounds, relaxed)
        return BestValues(y, found, bounds)

    def _assign(self, scores: Floats, i: int, y: Ints) -> None:
        """A best assignment of one exact example, into the values of all variables."""
        layout = self.layout
        mine = y[layout.variable_ptr[i] : layout.variable_ptr[i + 1]]
        draws = np.full((1, self._n_cliques(i)), -1.0)
        kernels.graph_decode.assign(layout.shapes, layout.examples, i, scores, 0.0, draws, mine[None, :])

    def _n_cliques(self, i: int) -> int:
        shape, ptr = int(self.layout.shape_of[i]), self.layout.shapes.clique_ptr
        return int(ptr[shape + 1] - ptr[shape])

    def second_best(self, scores: Floats, y: Ints, examples: Sequence[int]) -> Floats:
        """The best score of some exact examples without y, a best assignment; -inf where there is no other."""
        out = np.full(self.layout.n_examples, -np.inf)
        self._run(kernels.graph_decode.second_best, scores, y, self.layout.variable_ptr, out, only=examples)
        return out[examples]

    def score(self, scores: Floats, y: Ints) -> Floats:
        """The score of an assignment of each example."""
        layout = self.layout
        return np.asarray(np.bincount(layout.example_of, scores[layout.entries(y)], layout.n_examples), np.float64)

    def _cool(self, scores: Floats, y: Ints, found: Floats, bounds: Floats, left: list[int]) -> None:
        """Marginals at falling temperatures, their best values climbing; until bound and score meet."""
        layout, messages = self.layout, self.no_messages()
        found[left], bounds[left] = -np.inf, np.inf
        for temperature in _TEMPERATURES:
            parts = np.zeros(self.n_scores)
            self._sums(scores, messages, temperature, _DECODING_SWEEPS, parts, _NOTHING, _NOTHING, left)
            out = self._sums(scores, messages, 0.0, 0, _NOTHING, _NOTHING, _NOTHING, left)
            bounds[left] = np.minimum(bounds[left], out[left])
            new = self._likeliest(parts, scores)
            self._climb(scores, new, left)
            values = self.score(scores, new)
            for i in left:
                if values[i] > found[i]:
                    found[i] = values[i]
                    mine = slice(layout.variable_ptr[i], layout.variable_ptr[i + 1])
                    y[mine] = new[mine]
            bounds[left] = np.maximum(bounds[left], found[left])  # but for rounding
            left = [i for i in left if not is_tight(found[i], bounds[i])]

    def _climb(self, scores: Floats, y: Ints, examples: Sequence[int]) -> None:
        """Change single values as long as that helps."""
        scopes, where, climb = self.layout.scopes, self.layout.examples, kernels.graph_decode.climb
        self.workers.run_each(lambda i: climb(scopes, where, i, i + 1, scores, y, _CLIMBS), examples)

    def _likeliest(self, parts: Floats, scores: Floats) -> Ints:
        """The likeliest value of each variable by itself."""
        layout = self.layout
        values = parts[layout.node_scores]
        forbidden = scores[layout.node_scores] == -np.inf
        return likeliest(np.where(forbidden, -1.0, values), layout.cards)

    # ----- others

    def sample(self, scores: Floats, i: int, n: int, rng: np.random.Generator) -> Ints:
        """Draw n assignments of an exact example, (n, n_variables)."""
        layout = self.layout
        self._check_exact(i, "sampling")
        y = np.zeros((n, int(np.diff(layout.variable_ptr)[i])), np.int64)
        draws = rng.random((n, self._n_cliques(i)))
        kernels.graph_decode.assign(layout.shapes, layout.examples, i, scores, 1.0, draws, y)
        return y

    def kbest(self, scores: Floats, i: int, k: int) -> list[tuple[Ints, float]]:
        """Find the k best assignments of an exact example (Lawler's partition: each differs from the better ones)."""
        self._check_exact(i, "the k best labellings")
        layout = self.layout
        first, last = layout.variable_ptr[i], layout.variable_ptr[i + 1]
        nodes = layout.score_ptr[layout.node_parts[first:last]]
        cards, y = layout.cards[first:last], np.zeros(len(layout.types), np.int64)
        masked, ptr = scores.copy(), layout.score_ptr[layout.part_ptr[i : i + 2]]
        own_scores = slice(int(ptr[0]), int(ptr[1]))

        def solve(fixed: tuple[int, ...], banned: frozenset[int]) -> tuple[float, tuple[int, ...]]:
            """The best with the first values given, and none of some values at the next variable."""
            masked[own_scores] = scores[own_scores]
            for v, value in enumerate(fixed):
                others = np.arange(cards[v]) != value
                masked[nodes[v] : nodes[v] + cards[v]][others] = -np.inf
            for value in banned:
                masked[nodes[len(fixed)] + value] = -np.inf
            self._assign(masked, i, y)
            own = y[first:last]
            entries = layout.entries(y)[layout.part_ptr[i] : layout.part_ptr[i + 1]]
            return float(masked[entries].sum()), tuple(own.tolist())

        value, labels = solve((), frozenset())
        waiting: list[tuple[float, tuple[int, ...], tuple[int, ...], frozenset[int]]]
        waiting = [(-value, labels, (), frozenset())]
        found: list[tuple[Ints, float]] = []
        while waiting and len(found) < k:
            value, labels, fixed, banned = heapq.heappop(waiting)
            if value == np.inf:
                break
            found.append((np.array(labels, np.int64), -value))
            for v in range(len(fixed), len(labels)):
                out = frozenset({labels[v]}) | (banned if v == len(fixed) else frozenset())
                if len(out) < cards[v]:
                    score, other = solve(labels[:v], out)
                    heapq.heappush(waiting, (-score, other, labels[:v], out))
        return found

    def _check_exact(self, i: int, what: str) -> None:
        if not self.layout.is_exact[i]:
            raise BudgetError(
                f"Example {i}: {what} need exact sums, whose tables have more than "
                f"{self.layout.schedules.max_table:,} entries here. Raise `max_table`."
            )


def is_tight(score: float, bound: float) -> bool:
    """Whether nothing better than the score is possible, to nine digits."""
    return bound - score <= 1e-9 * max(1.0, abs(score))


def likeliest(values: Floats, cards: Ints) -> Ints:
    """The largest value of each variable, from the values of all, variable by variable."""
    starts = np.cumsum(cards) - cards
    if not len(starts):
        return np.zeros(0, np.int64)
    peaks = np.repeat(np.maximum.reduceat(values, starts), cards)
    at = np.flatnonzero(values == peaks)
    of = np.repeat(np.arange(len(cards)), cards)[at]
    _, first = np.unique(of, return_index=True)
    return np.asarray(at[first] - starts)
