"""What training graphs needs of X and y: labels by type, the problem, and the loss of every assignment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from vcrf.arguments.inputs import checked_weights, listed_labels
from vcrf.arguments.open_labels import is_open, named
from vcrf.complexity.report import model_families
from vcrf.errors import InputError
from vcrf.graphs.example import as_graphs
from vcrf.graphs.layout import GraphLayout, make_layout
from vcrf.graphs.reading import RawGraphs, Scale, collect, find_kinds, has_features, read_parts, skeletons
from vcrf.losses import Loss
from vcrf.model.graphs import GraphModel
from vcrf.problem.graphs import GraphProblem, build_graph_problem
from vcrf.structures.graph_loss import GraphLoss
from vcrf.types import Bools, Floats, Label, UInts32


class GraphData(NamedTuple):
    """A problem of graphs, and what is needed besides to make a model of its solution."""

    problem: GraphProblem
    raw: RawGraphs
    scales: dict[int, Scale]
    graphs: list[Any]
    labels: list[list[Label]]


def read_training(
    X: Sequence[Any], y: Any, sample_weight: Sequence[float] | None, directed: Any, is_scaled: bool, max_table: int,
    block_width: int,
) -> GraphData:  # fmt: skip
    """Check X and y and build the problem; graphs without nodes and of weight 0 are left out."""
    graphs, listed = as_graphs(X), listed_labels(y)
    if len(graphs) != len(listed):
        raise InputError(f"X and y differ in length: got {len(graphs)} graphs and {len(listed)} lists of labels.")
    weights = np.ones(len(graphs)) if sample_weight is None else checked_weights(sample_weight, len(graphs))
    raw = collect(graphs, directed)
    for i, (types, labels) in enumerate(zip(raw.node_types, listed, strict=True)):
        if len(types) != len(labels):
            raise InputError(f"Example {i} has {len(types)} nodes and {len(labels)} labels: expected one a node.")
    kept = [i for i, types in enumerate(raw.node_types) if len(types) and weights[i] > 0.0]
    if not kept:
        raise InputError(f"Training needs at least one graph with a node: got {len(graphs)}, all empty or of weight 0.")
    if len(kept) < len(graphs):
        graphs, listed, weights = [graphs[i] for i in kept], [listed[i] for i in kept], weights[kept]
        raw = collect(graphs, directed)
    _check_labels(listed)
    classes = _classes(raw, listed)
    kinds = find_kinds(raw, classes, directed)
    layout = make_layout(kinds, skeletons(raw, kinds), max_table, block_width)
    text, families, scales = read_parts(raw, kinds, layout.part_ptr, None, is_scaled)
    numbers, allowed = _numbers(layout, listed)
    normalised = None if sample_weight is None else weights / weights.sum()
    problem = build_graph_problem(text, layout, numbers, families, normalised, allowed)
    return GraphData(problem, raw, scales, graphs, listed)


def read_sample(X: Sequence[Any], y: Any, model: GraphModel, max_table: int, block_width: int) -> GraphData:
    """Graphs with labels that a model knows, as a problem with the model's families."""
    graphs, listed, kinds = as_graphs(X), listed_labels(y), model.kinds
    raw = collect(graphs, kinds.directed, kinds.types)
    sizes = [len(types) for types in raw.node_types]
    if sizes != [len(labels) for labels in listed]:
        raise InputError("X and y differ: expected one label a node.")
    if 0 in sizes:
        # Training leaves them out too.
        kept = [i for i, size in enumerate(sizes) if size]
        graphs, listed = [graphs[i] for i in kept], [listed[i] for i in kept]
        raw = collect(graphs, kinds.directed, kinds.types)
    check_features(raw, model)
    layout = make_layout(kinds, skeletons(raw, kinds), max_table, block_width)
    if not len(layout.types):
        raise InputError("A bound needs a sample: the graphs have no nodes.")
    known = [set(labels) for labels in kinds.labels]
    for i, labels in enumerate(listed):
        for v, label in enumerate(labels):
            if label not in known[int(raw.node_types[i][v])]:
                raise InputError(f"Example {i}, node {v}: the model has no label {label!r}.")
    text, _, _ = read_parts(raw, kinds, layout.part_ptr, model.scales)
    numbers, _ = _numbers(layout, listed)
    problem = build_graph_problem(text, layout, numbers, model_families(model))
    return GraphData(problem, raw, dict(model.scales), graphs, listed)


def check_features(raw: RawGraphs, model: GraphModel) -> None:
    """Refuse features of another form than those of training: an array has no names, and a list no columns."""
    kinds = model.kinds
    trained = {family.name for family in model.families}
    for number, kind in enumerate(kinds.kinds, 1):
        prefix = kinds.full_name(number)
        own = {name.removeprefix(f"{prefix} ") for name in trained if name.startswith(f"{prefix} ")} - {"bias"}
        for piece in raw.pieces.get((kind.name, kind.types), []):
            if not has_features(piece.features) or not own:
                continue
            is_array = hasattr(piece.features, "shape")
            if is_array and number not in model.scales and own != {"x"}:
                raise InputError(f"Example {piece.example}: features of {prefix!r} are an array, in training a list.")
            if not is_array and number in model.scales:
                raise InputError(f"Example {piece.example}: features of {prefix!r} are a list, in training an array.")


def check_choices(choices: Sequence[Any]) -> None:
    """Refuse in `allowed` what is neither a label, None nor a collection of labels."""
    for choice in choices:
        for label in choice if isinstance(choice, (set, frozenset, list, tuple)) else (choice,):
            if label is not None and not isinstance(label, (str, Integral)):
                raise InputError(
                    f"`allowed` has {label!r:.60}: expected None, a label (str or int) or a set of labels."
                )


def _check_labels(y: list[list[Any]]) -> None:
    for i, labels in enumerate(y):
        for v, label in enumerate(labels):
            if isinstance(label, (set, frozenset)) and not label:
                raise InputError(f"Example {i}, node {v}: an empty set allows no label. None is any label.")
            for one in named([[label]]):
                if not isinstance(one, (str, Integral)):
                    raise InputError(
                        f"Example {i}, node {v}: a label must be a str or an int, got {type(one).__name__}: {one!r}. "
                        "None leaves it open."
                    )


def _classes(raw: RawGraphs, y: list[list[Any]]) -> list[tuple[Label, ...]]:
    """The labels of each type of nodes, sorted; those of factor graphs are the numbers of their values."""
    found: list[dict[Label, None]] = [{} for _ in raw.types]
    for types, labels in zip(raw.node_types, y, strict=True):
        for t, label in zip(types.tolist(), labels, strict=True):
            found[t].update(dict.fromkeys(named([[label]])))
    classes: list[tuple[Label, ...]] = []
    for t, known in enumerate(found):
        if t in raw.sizes:
            wrong = [label for label in known if isinstance(label, str) or not 0 <= int(label) < raw.sizes[t]]
            if wrong:
                raise InputError(f"A variable with {raw.sizes[t]} values has the label {wrong[0]!r}.")
            classes.append(tuple(range(raw.sizes[t])))
            continue
        if not known:
            raise InputError(f"No node of type {raw.types[t]!r} has a label: every one is None.")
        if len({isinstance(label, str) for label in known}) > 1:
            raise InputError(f"Labels of nodes of type {raw.types[t]!r} must be all str or all int: got both.")
        classes.append(tuple(sorted(known)))
    return classes


def _numbers(layout: GraphLayout, y: list[list[Any]]) -> tuple[UInts32, Bools | None]:
    """Values of all variables, of one that is open the first that is allowed; and what is allowed, if some are open."""
    number = [{label: i for i, label in enumerate(labels)} for labels in layout.kinds.labels]
    flat = list(chain.from_iterable(y))
    types = layout.types.tolist()
    out = np.zeros(len(flat), np.uint32)
    for v, (t, label) in enumerate(zip(types, flat, strict=True)):
        first = next(named([[label]]), None) if is_open(label) else label
        out[v] = 0 if first is None else number[t][first]
    if not any(map(is_open, flat)):
        return out, None
    return out, allowed_values(layout, flat)


def allowed_values(layout: GraphLayout, choices: Sequence[Any]) -> Bools:
    """Whether each value of each variable is allowed: by None any, by a label or a set what it says."""
    number = [{label: i for i, label in enumerate(labels)} for labels in layout.kinds.labels]
    starts = np.cumsum(layout.cards) - layout.cards
    out = np.zeros(int(layout.cards.sum()), bool)
    for v, (t, choice) in enumerate(zip(layout.types.tolist(), choices, strict=True)):
        first, card = int(starts[v]), int(layout.cards[v])
        if choice is None:
            out[first : first + card] = True
            continue
        for label in choice if isinstance(choice, (set, frozenset, list, tuple)) else (choice,):
            if label in number[t]:
                out[first + number[t][label]] = True
    return out


# ------------------------------------------------------------------------------------ losses


def graph_loss(loss: Loss | Callable[..., Any] | None, data: GraphData, picks: bool = False) -> GraphLoss:
    """The loss in the layout of the scores.

    A loss that adds a cost a node is multiplied by the node's weight. A function loss(graph, y) may give pairs (nodes,
    {labels: cost}) for nodes and edges of the graph; what is not there costs nothing.
    """
    problem = data.problem
    if loss is None:
        return GraphLoss(np.zeros(0), picks)
    if isinstance(loss, Loss):
        return GraphLoss(_additive(loss, data), picks)
    table = _given(loss, data)
    if np.any(table[problem.truth] != 0.0):
        i = int(problem.example_of[np.flatnonzero(table[problem.truth])[0]])
        raise InputError(f"Example {i}: the loss of the true labels must be 0 on every part.")
    return GraphLoss(table, picks)


def _additive(loss: Loss, data: GraphData) -> Floats:
    layout = data.problem.layout
    labels = layout.kinds.labels
    matrices = [loss.for_labels(mine).token_costs(len(mine)) for mine in labels]
    if any(matrix is None for matrix in matrices):
        raise InputError(
            f"{type(loss).__name__} is an automaton along a sequence of labels, and graphs have none: use 'hamming', "
            "WeightedHammingLoss, or a function that gives costs of nodes and edges. On chains use VCRF."
        )
    table = np.zeros(int(layout.score_ptr[-1]))
    sizes = np.diff(layout.variable_ptr)
    shares = 1.0 / np.maximum(sizes, 1) if getattr(loss, "normalised", False) else np.ones(len(sizes))
    each = np.concatenate([np.zeros(0), *data.raw.node_weights]) * np.repeat(shares, sizes)
    for t, matrix in enumerate(map(np.asarray, matrices)):
        mine = np.flatnonzero(layout.types == t)
        first = layout.score_ptr[layout.node_parts[mine]]
        table[first[:, None] + np.arange(len(matrix))] = each[mine, None] * matrix[:, data.problem.y[mine]].T
    if data.problem.is_partial:
        # A label that is allowed costs nothing.
        nodes = layout.node_scores
        table[nodes[data.problem.allowed]] = 0.0
    return table


def _given(loss: Callable[..., Any], data: GraphData) -> Floats:
    layout = data.problem.layout
    table = np.zeros(int(layout.score_ptr[-1]))
    number = [{label: k for k, label in enumerate(labels)} for labels in layout.kinds.labels]
    for i, (graph, labels) in enumerate(zip(data.graphs, data.labels, strict=True)):
        skeleton, first = layout.skeletons[i], int(layout.part_ptr[i])
        place = {scope: first + p for p, scope in enumerate(skeleton.scopes)}
        for nodes, costs in loss(graph, labels):
            scope = tuple(int(v) for v in nodes)
            is_turned = scope not in place and scope[::-1] in place
            if is_turned:
                scope = scope[::-1]
            if scope not in place:
                raise InputError(f"Example {i}: the loss has a cost for nodes {scope}, which no node or edge joins.")
            part = place[scope]
            types = [int(skeleton.types[v]) for v in scope]
            if layout.kinds.symmetric[int(layout.kind_of[part]) - 1]:
                raise InputError("Costs of pairs need directed edges: use `directed=True`.")
            for names, cost in costs.items():
                listed = names if isinstance(names, tuple) else (names,)
                if len(listed) != len(scope):
                    raise InputError(
                        f"Example {i}: the loss has a cost for {names!r} at nodes {scope}: one label each."
                    )
                listed = listed[::-1] if is_turned else listed
                code = 0
                for t, label in zip(types, listed, strict=True):
                    if label not in number[t]:
                        raise InputError(
                            f"Example {i}: the loss has a cost for the label {label!r}, which is not known."
                        )
                    code = code * len(number[t]) + number[t][label]
                if not 0.0 <= float(cost) < np.inf:
                    raise InputError(f"Example {i}: a loss must be finite and not negative, got {cost!r}.")
                table[layout.score_ptr[part] + code] += float(cost)
    return table
