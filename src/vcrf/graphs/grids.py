"""Graphs of pictures: a node for each cell of a grid, or for each segment."""

from __future__ import annotations

from typing import Any

import numpy as np

from vcrf.errors import InputError
from vcrf.graphs.example import Graph
from vcrf.types import Floats, Ints

# Steps to a cell's neighbours (rows, columns), by the type of the edge.
_STEPS = {"right": (0, 1), "down": (1, 0), "down_right": (1, 1), "down_left": (1, -1)}
_N_TYPES = {4: 2, 8: 4}


def from_grid(features: Any, neighbours: int = 4, edge_features: str | None = None) -> Graph:
    """A node for each cell of a picture, row by row, and an edge to each neighbour.

    Parameters
    ----------
    features : (n_rows, n_columns) or (n_rows, n_columns, n_features)
    neighbours : 4 or 8
        Edges have the types "right" and "down", with 8 neighbours "down_right" and "down_left" too.
    edge_features : None, "ends" or "difference"
        What describes an edge: nothing, the features of both cells, or how far they are apart, |a - b|.

    Examples
    --------
    >>> picture = from_grid([[0.0, 1.0], [0.5, 0.5]])
    >>> picture.edge_type
    ['right', 'right', 'down', 'down']
    """
    cells = _cells(features, "features")
    n_rows, n_columns, width = cells.shape
    if neighbours not in _N_TYPES:
        raise InputError(f"`neighbours` must be 4 or 8, got {neighbours!r}.")
    numbers = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    edges, types = [np.zeros((0, 2), np.int64)], []
    for name, step in list(_STEPS.items())[: _N_TYPES[neighbours]]:
        pairs = np.stack(_pairs(numbers, *step), axis=1)
        edges.append(pairs)
        types += [name] * len(pairs)
    joined, nodes = np.concatenate(edges), cells.reshape(-1, width)
    places = np.stack([numbers.ravel() % n_columns, -(numbers.ravel() // n_columns)], axis=1).astype(np.float64)
    return Graph(nodes, joined, edge_features=_of_edges(nodes, joined, edge_features), edge_type=types, places=places)


def from_segments(segments: Any, image: Any) -> Graph:
    """A node for each segment of a picture (superpixels), and an edge between segments that touch.

    Parameters
    ----------
    segments : (n_rows, n_columns) whole numbers
        Which segment each cell belongs to; node i is that of the i-th smallest number.
    image : (n_rows, n_columns) or (n_rows, n_columns, n_channels)

    Returns
    -------
    Graph
        Features of a node: mean of each channel, share of the picture, row and column of the middle, from 0 to 1.
        Features of an edge: how many cells touch across it, and the difference of the means of each channel.

    Examples
    --------
    >>> from_segments([[7, 7, 9]], [[0.0, 0.2, 1.0]]).edge_features
    array([[1. , 0.9]])
    """
    cells, numbers = _cells(image, "image"), _segment_numbers(segments)
    if numbers.shape != cells.shape[:2]:
        raise InputError(f"`segments` is {numbers.shape} and `image` {cells.shape[:2]}: expected the same shape.")
    flat, n = numbers.ravel(), int(numbers.max()) + 1
    sizes = np.bincount(flat, minlength=n).astype(np.float64)
    rows, columns = np.indices(numbers.shape)
    means = _means(cells.reshape(len(flat), -1), flat, sizes)
    middle = _means(np.stack([rows.ravel(), columns.ravel()], axis=1).astype(np.float64) + 0.5, flat, sizes)
    nodes = np.column_stack([means, sizes / len(flat), middle / np.array(numbers.shape)])
    touching = np.concatenate([np.stack(_pairs(numbers, *_STEPS[name]), axis=1) for name in ("right", "down")])
    touching = np.sort(touching[touching[:, 0] != touching[:, 1]], axis=1)
    edges, lengths = np.unique(touching, axis=0, return_counts=True)
    described = np.column_stack([lengths, np.abs(means[edges[:, 0]] - means[edges[:, 1]])]).astype(np.float64)
    return Graph(nodes, edges, edge_features=described, places=middle[:, ::-1] * (1.0, -1.0))


def segment_labels(segments: Any, labels: Any) -> list[Any]:
    """The most frequent label of each segment's cells, for the nodes of `from_segments`; the smallest of equals.

    Examples
    --------
    >>> segment_labels([[7, 7, 7, 9]], [["sky", "sea", "sky", "sea"]])
    ['sky', 'sea']
    """
    numbers, given = _segment_numbers(segments), np.asarray(labels)
    if numbers.shape != given.shape:
        raise InputError(f"`segments` is {numbers.shape} and `labels` {given.shape}: expected the same shape.")
    names, codes = np.unique(given.ravel(), return_inverse=True)
    counts = np.zeros((int(numbers.max()) + 1, len(names)), np.int64)
    np.add.at(counts, (numbers.ravel(), codes.ravel()), 1)
    return [names[code].item() for code in counts.argmax(axis=1)]


def _cells(features: Any, name: str) -> Floats:
    """As (n_rows, n_columns, n_features)."""
    try:
        cells = np.asarray(features, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"`{name}` must be an array of numbers with rows of one length.") from None
    if cells.ndim not in (2, 3) or 0 in cells.shape:
        raise InputError(
            f"`{name}` must be (n_rows, n_columns) or (n_rows, n_columns, n_features), none of them 0: got shape "
            f"{cells.shape}."
        )
    return cells[:, :, None] if cells.ndim == 2 else cells


def _segment_numbers(segments: Any) -> Ints:
    given = np.asarray(segments)
    if given.ndim != 2 or given.dtype.kind not in "iu" or given.size == 0:
        raise InputError(
            f"`segments` must be whole numbers, (n_rows, n_columns): got shape {given.shape} of {given.dtype}."
        )
    return np.unique(given, return_inverse=True)[1].reshape(given.shape).astype(np.int64)


def _pairs(numbers: Ints, down: int, right: int) -> tuple[Ints, Ints]:
    """Cells and their neighbours so many rows below and columns to the right."""
    n_rows, n_columns = numbers.shape
    first = numbers[: n_rows - down, max(0, -right) : n_columns - max(0, right)]
    second = numbers[down:, max(0, right) : n_columns + min(0, right)]
    return first.ravel(), second.ravel()


def _of_edges(nodes: Floats, edges: Ints, kind: str | None) -> Floats | None:
    if kind is None:
        return None
    a, b = nodes[edges[:, 0]], nodes[edges[:, 1]]
    if kind == "ends":
        return np.concatenate([a, b], axis=1)
    if kind == "difference":
        return np.abs(a - b)
    raise InputError(f"`edge_features` must be None, 'ends' or 'difference', got {kind!r}.")


def _means(values: Floats, groups: Ints, sizes: Floats) -> Floats:
    """Means of the columns over each group."""
    sums = [np.bincount(groups, column, len(sizes)) for column in values.T]
    return np.stack(sums, axis=1) / sizes[:, None]
