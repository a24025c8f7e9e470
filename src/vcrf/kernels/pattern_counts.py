"""Tag patterns kept during a scan, and counts of them and of their pairs with columns: see `kernels.pattern_scan`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import inner_kernel, kernel
from vcrf.kernels.blocks import Sentences
from vcrf.types import Bools, Floats, Ints, UInts32


class Trie(NamedTuple):
    """Patterns kept, of lengths 0 .. k-1: those of length j are node_ptr[j] .. node_ptr[j+1]-1; node 0 is empty.

    Attributes
    ----------
    parent : the pattern without its oldest label
    oldest : the oldest label
    before, newest : the pattern without its newest label, and that label; of the empty pattern 0
    state : the automaton's state after the pattern, if nothing is known of the labels before it
    is_context : whether the automaton has it as a context
    right_ptr, right_label, right_node : CSR, patterns with one label more at the end that are kept
    node_of : (n_states,) the pattern of each context, -1 if it is not kept
    """

    node_ptr: Ints
    parent: Ints
    oldest: Ints
    before: Ints
    newest: UInts32
    state: Ints
    is_context: Bools
    right_ptr: Ints
    right_label: UInts32
    right_node: Ints
    node_of: Ints


class ColumnPairs(NamedTuple):
    """Columns with kept patterns of length k - 1: pairs of a column and a pattern.

    Attributes
    ----------
    token_ptr, token_column, token_value : CSR over tokens, columns that occur there
    pair_ptr : pairs pair_ptr[c] .. pair_ptr[c+1]-1 belong to column c
    pair_node : number of the pattern among those of its length
    """

    token_ptr: Ints
    token_column: UInts32
    token_value: Floats
    pair_ptr: Ints
    pair_node: Ints


class LevelSums(NamedTuple):
    """Sums over tokens by (pattern of length k - 1, label before it), flat: what a level adds up.

    `expected`, `observed`, `squares` are over all tokens; `pair_expected`, `pair_observed` those of the pairs
    (with absolute values), `pair_gradient` the pairs' expected less observed, with signs.
    """

    expected: Floats
    observed: Floats
    squares: Floats
    pair_expected: Floats
    pair_observed: Floats
    pair_gradient: Floats


@inner_kernel
def add_pairs(
    t: int, n_labels: int, pairs: ColumnPairs, weight: float, here: Floats, sign: float, sums: Floats, gradient: Floats
) -> None:
    """Add a token's posteriors to the pairs of its columns: |value| times to the sums, sign * value to the gradient."""
    for i in range(pairs.token_ptr[t], pairs.token_ptr[t + 1]):
        c, value = pairs.token_column[i], pairs.token_value[i] * weight
        for pair in range(pairs.pair_ptr[c], pairs.pair_ptr[c + np.uint32(1)]):
            source, to = pairs.pair_node[pair] * n_labels, pair * n_labels
            for a in range(n_labels):
                z = value * here[source + a]
                sums[to + a] += abs(z)
                gradient[to + a] += sign * z


@inner_kernel
def _right(node: int, label: int, right_ptr: Ints, right_label: UInts32, right_node: Ints) -> int:
    """The kept pattern with one label more at the end, or -1."""
    for i in range(right_ptr[node], right_ptr[node + 1]):
        if right_label[i] == label:
            return int(right_node[i])
    return -1


@inner_kernel
def count_runs(
    k: int, start: int, stop: int, n_labels: int, labels: UInts32, first_label: int, weight: float, trie: Trie,
    pairs: ColumnPairs, sums: Floats, pair_sums: Floats, pair_gradient: Floats, sign: float,
) -> None:  # fmt: skip
    """Add the patterns of length k of one label sequence, labels[first_label] being that of token `start`."""
    first = trie.node_ptr[k - 1]
    for t in range(start + k - 1, stop):
        node, at = 0, first_label + t - start
        for u in range(at - k + 2, at + 1):
            node = _right(node, labels[u], trie.right_ptr, trie.right_label, trie.right_node)
            if node < 0:
                break
        if node < 0:
            continue
        before = np.int64(labels[at - k + 1])
        sums[(node - first) * n_labels + before] += weight
        for i in range(pairs.token_ptr[t], pairs.token_ptr[t + 1]):
            c, value = pairs.token_column[i], pairs.token_value[i] * weight
            for pair in range(pairs.pair_ptr[c], pairs.pair_ptr[c + np.uint32(1)]):
                if pairs.pair_node[pair] == node - first:
                    pair_sums[pair * n_labels + before] += abs(value)
                    pair_gradient[pair * n_labels + before] += sign * value


@kernel
def count_truth(
    sentences: Sentences, first: int, last: int, n_labels: int, k: int, is_open: Bools, trie: Trie, pairs: ColumnPairs,
    sums: LevelSums,
) -> None:  # fmt: skip
    """Add the true labels of sentences first .. last-1, open ones left out, to what is observed."""
    for i in range(first, last):
        if not is_open[i]:
            count_runs(
                k, sentences.ptr[i], sentences.ptr[i + 1], n_labels, sentences.y, sentences.ptr[i],
                sentences.weights[i], trie, pairs, sums.observed, sums.pair_observed, sums.pair_gradient, -1.0,
            )  # fmt: skip


@kernel
def count_mixture(
    k: int, sent_ptr: Ints, y: UInts32, weights: Floats, sentence: Ints, label_ptr: Ints, labels: UInts32,
    share: Floats, n_labels: int, trie: Trie, pairs: ColumnPairs, sums: LevelSums,
) -> None:  # fmt: skip
    """Add the patterns of length k of label sequences, by their shares, to what is expected; the truth is observed."""
    for c in range(len(sentence)):
        if share[c] > 0.0:
            count_runs(
                k, sent_ptr[sentence[c]], sent_ptr[sentence[c] + 1], n_labels, labels, label_ptr[c], share[c], trie,
                pairs, sums.expected, sums.pair_expected, sums.pair_gradient, 1.0,
            )  # fmt: skip
    for i in range(len(weights)):
        if weights[i] > 0.0:
            count_runs(
                k, sent_ptr[i], sent_ptr[i + 1], n_labels, y, sent_ptr[i], weights[i], trie, pairs, sums.observed,
                sums.pair_observed, sums.pair_gradient, -1.0,
            )  # fmt: skip


@kernel
def column_pairs(
    ptr: Ints, positions: UInts32, values: Floats, columns: UInts32, marginals: Floats, truth: Floats,
    floors: Floats, has_signs: bool, found_column: Ints, found_label: Ints,
) -> int:  # fmt: skip
    """Pairs of a column (by place in `columns`) and a label whose counts exceed the column's floor; how many.

    `marginals`, `truth` : (n_tokens, L), times the weights. Expected and true counts bound their difference by the
    larger one, or by their sum if values have both signs. Writes as many as fit.
    """
    n_labels = marginals.shape[1]
    expected, observed = np.empty(n_labels), np.empty(n_labels)
    n = 0
    for i in range(len(columns)):
        expected[:] = 0.0
        observed[:] = 0.0
        for j in range(ptr[columns[i]], ptr[columns[i] + np.uint32(1)]):
            value = abs(values[j]) if len(values) > 0 else 1.0
            for b in range(n_labels):
                expected[b] += value * marginals[positions[j], b]
                observed[b] += value * truth[positions[j], b]
        for b in range(n_labels):
            size = expected[b] + observed[b] if has_signs else max(expected[b], observed[b])
            if size > floors[i]:
                if n < len(found_column):
                    found_column[n], found_label[n] = i, b
                n += 1
    return n
