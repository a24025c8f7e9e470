"""Forward-backward over blocks of sentences in the scaled probability domain, any order.

Potentials at position t are node scores (one row of L labels a token), tables of plain tag patterns, and
sparse corrections (features of longer patterns that fire at this token only). Messages are normalised at each
position, so nothing overflows. Sentences whose potentials span more than MAX_RANGE nats within the memory of
the chain are flagged and left to the log-domain lattice, because a message could then underflow.

Arcs of depth d are patterns of d labels; the table of depth d starts at offsets[d]. At full depth (order p)
an arc is (a, h, b): oldest label, the p-2 labels between, newest label; H = L**(p-2) values of h.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vcrf.kernels._jit import fast_kernel, kernel
from vcrf.kernels.exponential import exp_inplace
from vcrf.types import Floats, Ints, UInts32

# exp(-600) is far above the smallest positive double (exp(-708)), with room for a product of marginals.
MAX_RANGE = 600.0


class Sentences(NamedTuple):
    """Where sentences are, their labels, and per sentence the loss of a wrong label and the weight."""

    ptr: Ints
    y: UInts32
    costs: Floats
    weights: Floats


class Tables(NamedTuple):
    """Scores of plain tag patterns by depth: raw, and exp(score - shift[depth]) in three layouts."""

    order: int
    offsets: Ints
    log: Floats
    exp: Floats
    forward: Floats  # full depth as [h, b, a]
    backward: Floats  # full depth as [h, a, b]
    shift: Floats
    span: float


class Corrections(NamedTuple):
    """CSR over tokens: pattern length, pattern code, score and exp(score) of features of longer patterns."""

    ptr: Ints
    size: UInts32
    code: UInts32
    score: Floats
    factor: Floats


class Scratch(NamedTuple):
    """A thread's own copies of the tables, into which the corrections of one token are multiplied."""

    table: Floats
    forward: Floats
    backward: Floats


class PassOutput(NamedTuple):
    """What a pass writes: values (sentences), residuals (tokens, labels), corrections' residuals, flags."""

    values: Floats
    residuals: Floats
    cor_residuals: Floats
    hard: UInts32


@fast_kernel
def dots(matrix: Floats, first: int, x: Floats, x_first: int, out: Floats, out_first: int, size: int) -> None:
    """out[i] = sum_j matrix[i, j] * x[j], all three inside flat arrays; long rows share the loads of x by four.

    Flat arrays and unsigned indices: views and wrap-around checks would cost more than the products.
    """
    n = np.uint64(size)
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    m, u, o = np.uint64(first), np.uint64(x_first), np.uint64(out_first)
    i = np.uint64(0)
    while n > np.uint64(16) and i + four <= n:
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        m1, m2, m3 = m + n, m + n + n, m + n + n + n
        for j in range(n):
            z = x[u + j]
            s0 += z * matrix[m + j]
            s1 += z * matrix[m1 + j]
            s2 += z * matrix[m2 + j]
            s3 += z * matrix[m3 + j]
        out[o + i] = s0
        out[o + i + one] = s1
        out[o + i + two] = s2
        out[o + i + three] = s3
        i += four
        m = m3 + n
    while i < n:
        s = 0.0
        for j in range(n):
            s += x[u + j] * matrix[m + j]
        out[o + i] = s
        i += one
        m += n


@fast_kernel
def key_scores(
    ptr: Ints, labels: UInts32, features: UInts32, values: Floats, w: Floats, first: int, last: int, out: Floats
) -> None:
    """out[row, b] = sum of w over the entries of each row; `values` is empty for indicators."""
    for row in range(first, last):
        for b in range(out.shape[1]):
            out[row, b] = 0.0
        if len(values) == 0:
            for j in range(ptr[row], ptr[row + 1]):
                out[row, labels[j]] += w[features[j]]
        else:
            for j in range(ptr[row], ptr[row + 1]):
                out[row, labels[j]] += w[features[j]] * values[j]


@fast_kernel
def node_scores(rows: UInts32, scores: Floats, first: int, last: int, out: Floats) -> None:
    """out[(t - first) * L + b] = sum over groups of the score row of the token's key (row 0 is nothing)."""
    n = np.uint64(scores.shape[1])
    n_groups = rows.shape[1]
    flat = scores.reshape(-1)
    at = np.uint64(0)
    for t in range(first, last):
        for b in range(n):
            out[at + b] = 0.0
        for j in range(n_groups):
            row = np.uint64(rows[t, j]) * n
            if row != np.uint64(0):
                for b in range(n):
                    out[at + b] += flat[row + b]
        at += n


@kernel
def _shift_nodes(
    node: Floats, n_labels: int, y: UInts32, t0: int, first: int, last: int, cost: float, span: Floats, shift: Floats
) -> float:
    """Add the loss to wrong labels and subtract each row's maximum; returns the score of the true labels."""
    n = np.uint64(n_labels)
    truth = 0.0
    at = np.uint64(first) * n
    for t in range(first, last):
        gold = at + np.uint64(y[t0 + t])
        truth += node[gold]
        if cost != 0.0:
            for b in range(n):
                node[at + b] += cost
            node[gold] -= cost
        high, low = node[at], node[at]
        for b in range(n):
            z = node[at + b]
            high = z if z > high else high
            low = z if z < low else low
        for b in range(n):
            # A hard sentence is done elsewhere; the clip only keeps exp_inplace in its domain.
            z = node[at + b] - high
            node[at + b] = z if z > -700.0 else -700.0
        span[t] = high - low
        shift[t] = high
        at += n
    return truth


@kernel
def _is_hard(span: Floats, table_span: float, first: int, last: int, order: int) -> bool:
    """Whether a message of the sentence could span more than MAX_RANGE nats.

    Every state is reached from every state p-1 steps before, so two entries of a message differ by at most the
    spans of the potentials of those steps. (NaN or infinite potentials are hard too.)
    """
    memory = max(order - 1, 1)
    for t in range(first, last):
        total = 0.0
        for u in range(max(first, t - memory + 1), t + 1):
            total += span[u] + table_span
        if not total < MAX_RANGE:
            return True
    return False


@kernel
def power(base: int, exponent: int) -> int:
    """base ** exponent for small non-negative exponents."""
    out = 1
    for _ in range(exponent):
        out *= base
    return out


@kernel
def pattern_code(y: UInts32, first: int, last: int, n_labels: int) -> int:
    """Base-L number of the labels at positions first .. last."""
    code = 0
    for u in range(first, last + 1):
        code = code * n_labels + y[u]
    return code


@kernel
def correct(
    cor: Corrections, t: int, n_labels: int, depth: int, undo: bool, tables: Tables, work: Scratch
) -> None:
    """Multiply the corrections of token t into the scratch tables, or restore what they touched."""
    half = power(n_labels, max(tables.order - 2, 0))
    for j in range(cor.ptr[t], cor.ptr[t + 1]):
        k = cor.size[j]
        if k > depth:
            continue
        step = power(n_labels, k)
        for prefix in range(power(n_labels, depth - k)):
            arc = prefix * step + cor.code[j]
            at = tables.offsets[depth] + arc
            work.table[at] = tables.exp[at] if undo else work.table[at] * cor.factor[j]
            if depth == tables.order:
                s, b = arc // n_labels, arc % n_labels
                a, h = s // half, s % half
                work.forward[(h * n_labels + b) * n_labels + a] = work.table[at]
                work.backward[(h * n_labels + a) * n_labels + b] = work.table[at]


@kernel
def _correction_residuals(
    cor: Corrections, t: int, y: UInts32, n_labels: int, depth: int, tables: Tables, work: Scratch,
    alpha: Floats, before: int, back: Floats, here: int, weight: float, out: Floats,
) -> None:  # fmt: skip
    """Posterior minus truth of each corrected pattern at token t."""
    half = power(n_labels, max(tables.order - 2, 0))
    for j in range(cor.ptr[t], cor.ptr[t + 1]):
        k = cor.size[j]
        out[j] = 0.0
        if k > depth:
            continue
        step = power(n_labels, k)
        total = 0.0
        for prefix in range(power(n_labels, depth - k)):
            arc = prefix * step + cor.code[j]
            s, b = arc // n_labels, arc % n_labels
            h = s % half if depth == tables.order else s
            total += alpha[before + s] * work.table[tables.offsets[depth] + arc] * back[here + h * n_labels + b]
        truth = pattern_code(y, t - k + 1, t, n_labels) == cor.code[j]
        out[j] = weight * (total - (1.0 if truth else 0.0))


@kernel
def _correction_counts(
    cor: Corrections, t: int, n_labels: int, tables: Tables, work: Scratch,
    alpha: Floats, before: int, back: Floats, here: int, weight: float, counts: Floats,
) -> None:  # fmt: skip
    """Add what the corrections change in the posteriors of full-depth arcs: the caller sums plain tables.

    Restores work.table on the way, so that an arc touched by two corrections is counted once.
    """
    half = power(n_labels, max(tables.order - 2, 0))
    for j in range(cor.ptr[t], cor.ptr[t + 1]):
        step = power(n_labels, cor.size[j])
        for prefix in range(power(n_labels, tables.order - cor.size[j])):
            arc = prefix * step + cor.code[j]
            at = tables.offsets[tables.order] + arc
            s, b = arc // n_labels, arc % n_labels
            flow = alpha[before + s] * back[here + (s % half) * n_labels + b]
            counts[at] += weight * flow * (work.table[at] - tables.exp[at])
            work.table[at] = tables.exp[at]


@kernel
def _true_patterns(sentences: Sentences, i: int, n_labels: int, tables: Tables, cor: Corrections, counts: Floats) -> float:
    """Score of the true sequence's longer patterns; its arcs are taken off `counts`."""
    total = 0.0
    order, offsets, log, cor_ptr, y, weight = tables.order, tables.offsets, tables.log, cor.ptr, sentences.y, sentences.weights[i]
    start, stop = sentences.ptr[i], sentences.ptr[i + 1]
    for t in range(start, stop):
        depth = min(t - start + 1, order)
        code = pattern_code(y, t - depth + 1, t, n_labels)
        total += log[offsets[depth] + code]
        counts[offsets[depth] + code] -= weight
        for j in range(cor_ptr[t], cor_ptr[t + 1]):
            if cor.size[j] <= depth and code % power(n_labels, cor.size[j]) == cor.code[j]:
                total += cor.score[j]
    return total


@fast_kernel
def _normalise(x: Floats, first: int, size: int, node: Floats, node_first: int, n_labels: int) -> float:
    """x[h, b] *= node[b], then x /= sum(x); returns the sum."""
    n, end = np.uint64(n_labels), np.uint64(first + size)
    u = np.uint64(node_first)
    total = 0.0
    at = np.uint64(first)
    while at < end:
        for b in range(n):
            z = x[at + b] * node[u + b]
            x[at + b] = z
            total += z
        at += n
    scale = 1.0 / total
    for i in range(np.uint64(first), end):
        x[i] *= scale
    return total


@kernel
def _forward(
    start: int, stop: int, t0: int, node: Floats, shift: Floats, n_labels: int, tables: Tables, cor: Corrections,
    work: Scratch, alpha: Floats, scale: Floats,
) -> float:  # fmt: skip
    """Messages alpha[u] before token start + u (u = 0 .. T) and normalisers; returns the log-partition."""
    n_states = power(n_labels, max(tables.order - 1, 1))
    half = power(n_labels, max(tables.order - 2, 0))
    column = np.empty(n_labels)
    # Fields are taken out of the tuples once: doing so in the loop costs a reference count each time.
    order, table_shift, cor_ptr, forward = tables.order, tables.shift, cor.ptr, work.forward
    alpha[0] = 1.0
    n_hist = 1
    log_z = 0.0
    for t in range(start, stop):
        depth = min(t - start + 1, order)
        old = (t - start) * n_states
        new = old + n_states
        has_corrections = cor_ptr[t + 1] > cor_ptr[t]
        if has_corrections:
            correct(cor, t, n_labels, depth, False, tables, work)
        n_next = n_hist
        if depth < order or order == 1:
            n_next = n_hist * n_labels
            for s in range(n_hist):
                x = alpha[old + s] if order > 1 else 1.0
                for b in range(n_labels):
                    k = s * n_labels + b
                    alpha[new + k] = x * work.table[tables.offsets[depth] + k]
        elif half == 1:
            dots(forward, 0, alpha, old, alpha, new, n_labels)
        else:
            for h in range(half):
                for a in range(n_labels):
                    column[a] = alpha[old + a * half + h]
                dots(forward, h * n_labels * n_labels, column, 0, alpha, new + h * n_labels, n_labels)
        total = _normalise(alpha, new, n_next, node, (t - t0) * n_labels, n_labels)
        if has_corrections:
            correct(cor, t, n_labels, depth, True, tables, work)
        scale[t - start] = 1.0 / total
        log_z += math.log(total) + shift[t - t0] + table_shift[depth]
        n_hist = n_next if order > 1 else 1
    return log_z


@fast_kernel
def _add_products(x: Floats, x_first: int, y: Floats, scale: float, out: Floats, out_first: int, n_labels: int) -> None:
    """out[b] += scale * x[b] * y[b]."""
    u, o = np.uint64(x_first), np.uint64(out_first)
    for b in range(np.uint64(n_labels)):
        out[o + b] += scale * x[u + b] * y[b]


@fast_kernel
def _scaled_products(
    x: Floats, x_first: int, y: Floats, scale: float, out: Floats, out_first: int, n_labels: int
) -> None:
    """out[b] = scale * x[b] * y[b]."""
    u, o = np.uint64(x_first), np.uint64(out_first)
    for b in range(np.uint64(n_labels)):
        out[o + b] = scale * x[u + b] * y[b]


@fast_kernel
def _copy(x: Floats, x_first: int, out: Floats, out_first: int, size: int) -> None:
    u, o = np.uint64(x_first), np.uint64(out_first)
    for i in range(np.uint64(size)):
        out[o + i] = x[u + i]


@kernel
def _backward(
    i: int, t0: int, sentences: Sentences, node: Floats, n_labels: int, tables: Tables, cor: Corrections,
    work: Scratch, alpha: Floats, scale: Floats, messages: Floats, back: Floats, counts: Floats, out: PassOutput,
) -> None:  # fmt: skip
    """Residuals of the sentence, and the messages around each token (`messages`, `back`: flat, block-local)."""
    start, stop = sentences.ptr[i], sentences.ptr[i + 1]
    weight, y, residuals = sentences.weights[i], sentences.y, out.residuals
    n_states = power(n_labels, max(tables.order - 1, 1))
    half = power(n_labels, max(tables.order - 2, 0))
    order, cor_ptr, backward = tables.order, cor.ptr, work.backward
    beta, result = np.ones(n_states), np.empty(n_labels)
    for t in range(stop - 1, start - 1, -1):
        depth = min(t - start + 1, order)
        is_deep = depth == order and depth > 1
        n_next = n_states if depth >= order else power(n_labels, depth)
        n_hist = n_states if is_deep else power(n_labels, depth - 1)
        before, here = (t - start) * n_states, (t - t0) * n_states
        row = t * n_labels
        if n_next == n_labels:
            _scaled_products(alpha, before + n_states, beta, weight, residuals, row, n_labels)
            _scaled_products(node, (t - t0) * n_labels, beta, scale[t - start], back, here, n_labels)
        else:
            for b in range(n_labels):
                residuals[row + b] = 0.0
            for k in range(0, n_next, n_labels):
                part = beta[k : k + n_labels]
                _add_products(alpha, before + n_states + k, part, weight, residuals, row, n_labels)
                _scaled_products(node, (t - t0) * n_labels, part, scale[t - start], back, here + k, n_labels)
        residuals[row + y[t]] -= weight
        _copy(alpha, before, messages, here, n_hist)
        for s in range(n_hist, n_states):
            messages[here + s] = 0.0
        has_corrections = cor_ptr[t + 1] > cor_ptr[t]
        if has_corrections:
            correct(cor, t, n_labels, depth, False, tables, work)
            _correction_residuals(
                cor, t, y, n_labels, depth, tables, work, alpha, before, back, here, weight, out.cor_residuals
            )
        if is_deep:
            for h in range(half):
                dots(backward, h * n_labels * n_labels, back, here + h * n_labels, result, 0, n_labels)
                for a in range(n_labels):
                    beta[a * half + h] = result[a]
        else:
            _shallow_step(n_labels, n_hist, tables, depth, work, alpha, before, back, here, weight, counts, beta)
        if has_corrections:
            if is_deep:
                _correction_counts(cor, t, n_labels, tables, work, alpha, before, back, here, weight, counts)
            correct(cor, t, n_labels, depth, True, tables, work)


@kernel
def _shallow_step(
    n_labels: int, n_hist: int, tables: Tables, depth: int, work: Scratch, alpha: Floats, before: int, back: Floats,
    here: int, weight: float, counts: Floats, beta: Floats,
) -> None:  # fmt: skip
    """Backward step and arcs' posteriors where fewer labels than the order are known."""
    base = tables.offsets[depth]
    for s in range(n_hist):
        total = 0.0
        for b in range(n_labels):
            k = s * n_labels + b
            z = work.table[base + k] * back[here + k]
            total += z
            counts[base + k] += weight * alpha[before + s] * z
        beta[s] = total


@fast_kernel
def _outer_sums(
    messages: Floats, back: Floats, weights: Floats, n_tokens: int, n_labels: int, half: int, sums: Floats
) -> None:
    """sums[a, h, b] += sum_t weights[t] * messages[t, a, h] * back[t, h, b], four tokens at a time."""
    n, k = np.uint64(n_labels), np.uint64(half)
    size = n * k
    last = np.uint64(n_tokens)
    for t in range(np.uint64(0), last, np.uint64(4)):
        # Past the end the last token is repeated with weight 0.
        t1, t2, t3 = min(t + np.uint64(1), last - np.uint64(1)), min(t + np.uint64(2), last - np.uint64(1)), min(t + np.uint64(3), last - np.uint64(1))
        w0 = weights[t]
        w1 = weights[t1] if t1 == t + np.uint64(1) else 0.0
        w2 = weights[t2] if t2 == t + np.uint64(2) else 0.0
        w3 = weights[t3] if t3 == t + np.uint64(3) else 0.0
        i0, i1, i2, i3 = t * size, t1 * size, t2 * size, t3 * size
        for s in range(size):
            h = s % k * n if k > np.uint64(1) else np.uint64(0)
            x0, x1, x2, x3 = w0 * messages[i0 + s], w1 * messages[i1 + s], w2 * messages[i2 + s], w3 * messages[i3 + s]
            o = s * n
            g0, g1, g2, g3 = i0 + h, i1 + h, i2 + h, i3 + h
            for b in range(n):
                sums[o + b] += x0 * back[g0 + b] + x1 * back[g1 + b] + x2 * back[g2 + b] + x3 * back[g3 + b]


@kernel
def add_arc_counts(
    messages: Floats, back: Floats, weights: Floats, n_labels: int, tables: Tables, sums: Floats, counts: Floats
) -> None:
    """counts of full-depth arcs += table * sums of the messages' products over a block of tokens.

    `weights` is 0 for tokens of less than full depth; `sums` is scratch of n_labels**order entries.
    """
    half = power(n_labels, max(tables.order - 2, 0))
    sums[:] = 0.0
    _outer_sums(messages, back, weights, len(weights), n_labels, half, sums)
    first = tables.offsets[tables.order]
    for arc in range(len(sums)):
        counts[first + arc] += tables.exp[first + arc] * sums[arc]


@kernel
def chain_pass(
    sentences: Sentences, first: int, last: int, n_labels: int, rows: UInts32, scores: Floats, tables: Tables,
    cor: Corrections, counts: Floats, messages: Floats, back: Floats, out: PassOutput,
) -> None:  # fmt: skip
    """Forward-backward of sentences first .. last-1.

    Writes out.values[i] = log sum exp - score of the truth, out.residuals[t] = weight * (marginal - truth), the
    corrections' residuals, and flags hard sentences, for which nothing else is written.
    `messages`, `back` (tokens of the block x L**max(p-1,1), flat): alpha before each token and
    node * beta / normaliser after it, so that the posterior of arc (s, b) is alpha * table * back.
    `counts` gets posterior - truth of the arcs, except the plain-table part of full-depth arcs, which the
    caller adds as one matrix product of the messages.
    """
    t0, t1 = sentences.ptr[first], sentences.ptr[last]
    n_tokens = t1 - t0
    n_states = power(n_labels, max(tables.order - 1, 1))
    longest = 0
    for i in range(first, last):
        longest = max(longest, sentences.ptr[i + 1] - sentences.ptr[i])
    node, span, shift = np.empty(n_tokens * n_labels), np.empty(n_tokens), np.empty(n_tokens)
    node_scores(rows, scores, t0, t1, node)
    for i in range(first, last):
        a, z = sentences.ptr[i] - t0, sentences.ptr[i + 1] - t0
        out.values[i] = -_shift_nodes(node, n_labels, sentences.y, t0, a, z, sentences.costs[i], span, shift)
        for t in range(a, z):
            for j in range(cor.ptr[t0 + t], cor.ptr[t0 + t + 1]):
                span[t] += abs(cor.score[j])
        out.hard[i] = 1 if _is_hard(span, tables.span, a, z, tables.order) else 0
    bits = np.empty(len(node), np.uint64)
    exp_inplace(node, bits, bits.view(np.float64))
    alpha, scale = np.empty((longest + 1) * n_states), np.empty(longest)
    work = Scratch(tables.exp.copy(), tables.forward.copy(), tables.backward.copy())
    for i in range(first, last):
        start, stop = sentences.ptr[i], sentences.ptr[i + 1]
        if out.hard[i] == 1:
            messages[(start - t0) * n_states : (stop - t0) * n_states] = 0.0
            back[(start - t0) * n_states : (stop - t0) * n_states] = 0.0
            continue
        log_z = _forward(start, stop, t0, node, shift, n_labels, tables, cor, work, alpha, scale)
        out.values[i] += log_z - _true_patterns(sentences, i, n_labels, tables, cor, counts)
        _backward(i, t0, sentences, node, n_labels, tables, cor, work, alpha, scale, messages, back, counts, out)
