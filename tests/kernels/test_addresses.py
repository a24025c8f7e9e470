"""Results of fast kernels do not depend on where arrays lie.

Whether a loop runs in vectors may be decided when it runs, by how far what it stores lies from what it reads. What it
stores is the same either way; a sum that may be reordered is not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vcrf import kernels
from vcrf.kernels._jit import kernel
from vcrf.lattice.automaton import build_automaton

_ROOM = Path(kernels.__file__).parent

# ------------------------------------------------------------------------------------ by reading them


def _fast_kernels() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted(_ROOM.glob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any("fast_kernel" in ast.unparse(d) for d in node.decorator_list):
                yield path.stem, node


def _stores_and_sums(loop: ast.For | ast.While) -> bool:
    """Whether an innermost loop stores into an array and adds to a number."""
    statements = [node for line in loop.body for node in ast.walk(line)]
    if any(isinstance(node, ast.For | ast.While) for node in statements):
        return False
    targets = [
        target
        for node in statements
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    sums = [node for node in statements if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)]
    stores = any(isinstance(target, ast.Subscript) for target in targets)
    counted = {"n", "at", "state", "p", "m", "i"}  # places, not sums
    return stores and any(node.target.id not in counted for node in sums)  # type: ignore[union-attr]


def test_no_loop_stores_and_sums_at_once():
    """Two loops cost little and have one order."""
    found = {
        name.name
        for _, name in _fast_kernels()
        for loop in ast.walk(name)
        if isinstance(loop, ast.For | ast.While) and _stores_and_sums(loop)
    }
    assert not found


# ------------------------------------------------------------------------------------ by calling them

Draw = Callable[..., np.ndarray]


class _Case:
    """What a kernel is called with: n labels or lanes, and a small pattern automaton."""

    def __init__(self, n: int) -> None:
        self.n, self._rng = n, np.random.default_rng(n)
        codes = np.unique(self._rng.integers(0, n**3, 2 * n))
        self.graph = build_automaton(n, np.full(len(codes), 3, np.uint32), codes.astype(np.uint32))

    def floats(self, *shape: int) -> np.ndarray:
        return self._rng.random(shape) + 0.1

    def small(self, *shape: int) -> np.ndarray:
        return self.floats(*shape).astype(np.float32)

    def below(self, limit: int, size: int) -> np.ndarray:
        return self._rng.integers(0, limit, size).astype(np.uint32)

    @property
    def states(self) -> int:
        return self.graph.n_states

    @property
    def arcs(self) -> int:
        return self.graph.n_arcs

    def of(self, *names: str) -> list[np.ndarray]:
        """Arrays of the automaton, as kernels have them."""
        plain = {"first", "fail", "end", "arc_ptr"}
        found = [getattr(self.graph, name) for name in names]
        return [
            x if name in plain else np.maximum(x, 0).astype(np.uint32) for name, x in zip(names, found, strict=True)
        ]


_W = 3  # lanes of what has lanes


def _chain(c: _Case) -> dict[str, list[Any]]:
    n, f = c.n, c.floats
    return {
        "pair_posterior": [n, f(n * n), f(n), 0, f(n), 0, 0.7, f(n * n)],
        "_add_posterior": [n, n, 0, f(n * n * n), f(n * n), 0, f(n * n), 0, 0.7, f(n * n * n)],
        "_normalise": [f(3 * n), n, 2 * n, f(2 * n), n, n],
        "_add_products": [f(2 * n), n, f(n), 0.7, f(2 * n), n, n],
        "_scaled_products": [f(2 * n), n, f(n), 0.7, f(2 * n), n, n],
        "_outer_sums": [f(6 * n), f(6 * n), f(6), n, 1, f(n * n)],
    }


def _dual_ascent(c: _Case) -> dict[str, list[Any]]:
    n, f, s, wide = c.n, c.floats, c.small, c.n + 8  # rows have room for whole registers
    rows = [c.below(2, 5).reshape(-1, 1), np.array([0, 2, 4]), c.below(3, 4), s(4)]
    return {
        "_score_tokens": [
            0, 5, n, *rows, s(4 * wide) - s(4 * wide), np.zeros(3, np.int64), np.array([0, 2]), s(2), s(2), s(5 * wide),
            s(5 * wide),
        ],
        "_below_largest": [f(3 * n + 4), 3, n, f(2), f(3 * wide)],
        "_score_pairs": [f(n, n) - f(n, n), s(2), s(2), 0, 2, f(n * n), f(n * n)],
        "_direction": [0, 3, n, s(3 * n), s(3 * wide), f(3 * n)],
        "_move": [
            0, 5, n, 0.3, 0.7, *rows, np.ones(3 * n, np.uint8), f(5 * n), s(5 * n), s(3 * n), s(5 * n),
        ],
        "_pair_direction": [
            1, n, f(n * n), s(2 * n * n).reshape(2, -1), 0.3, np.ones((n, n), np.uint8), f(n * wide), 0.7,
        ],
        "_move_pairs": [
            1, n, 0.3, 0.7, f(n * wide), np.ones((n, n), np.uint8), s(2 * n * n).reshape(2, -1), f(n, n),
        ],
    }  # fmt: skip


def _gradient(c: _Case) -> dict[str, list[Any]]:
    n, f = c.n, c.floats
    ptr, positions = np.array([0, 3, 3, 7]), c.below(9, 7)
    none, labels = np.zeros(0, np.uint32), np.arange(n).astype(np.uint32)
    half = labels[: max(n // 4, 1)]
    return {
        "key_residuals": [ptr, positions, np.array([0, 1, 1, 2]), f(9, n), 0, 3, f(3, n)],
        "_dense_gradient": [0, 7, positions, f(7), 1, 0, f(9 * n), f(n)],
        "feature_gradient": [
            np.array([0, 3, 7]), positions, f(7), np.array([0, n]), np.array([n, len(half)]),
            np.concatenate([labels, half]), 0, f(9, n), 0, 2, f(n + len(half)),
        ],
        "scan_labels": [
            ptr, positions, f(7), np.array([0, 2], np.uint32), np.zeros(2), np.zeros(0, np.int64), none, f(9, n),
            np.zeros(2 * n, np.uint32), np.zeros(2 * n, np.uint32), f(2 * n),
        ],
        "_add_posterior": [n, n, n, f(n), f(n * n), f(n * n), 0.7, f(n * n)],
        "_add_scaled": [f(n), 0.7, f(n)],
        "sum_slots": [np.array([0, 4, 4 + n]), c.below(9, 4 + n), f(4 + n), f(9), 0, 2, f(2)],
    }  # fmt: skip


def _lanes(c: _Case) -> dict[str, list[Any]]:
    n, f, states, arcs, w = c.n, c.floats, c.states, c.arcs, _W
    first, arc_ptr, fail = c.of("first", "arc_ptr", "fail")
    up, state, long = c.of("up", "arc_state", "long_pairs")
    return {
        "_add_long_pairs": [w, n, long, state, f(arcs), f(states * w), 0, f(states * w)],
        "_add_own_arcs": [
            w, states - 1, fail, arc_ptr, up, state, f(arcs), f(states * w), 0, f(states * w), f(states * w),
        ],
        "hand_down": [w, n, fail, f(states * w)],
        "_take_long_pairs": [n, n, long, state, f(arcs), f(states * n), f(states * n), 0, f(states * n), f(arcs)],
        "_take_own_arcs": [n, n, arc_ptr, up, state, f(arcs), f(states * n), f(states * n), 0, f(states * n), f(arcs)],
        "label_sums": [w, n, first, f(states * w), f(states * w), 0, f(n * w), f(w)],
    }  # fmt: skip


def _levels(c: _Case) -> dict[str, list[Any]]:
    n, f, states, arcs = c.n, c.floats, c.states, c.arcs
    up, last = c.of("up", "last")
    table = c.graph.table
    labels = np.arange(n).astype(np.uint32)
    return {
        "_add_overwritten": [n, n, up, f(arcs * n)],
        "_add_products": [n, 1, 0, 0, n, labels, table, f(n), f(arcs * n), f(n), f(n), f(n), 0],
        "_write_products": [n, 1, 2, 0, 0, n, labels, table, f(2 * n), f(arcs * n), f(n * n), 0],
        "_add_rows": [n, 3, f(3 * n), 0, f(n), f(3), f(3), 0],
        "_inverse_betas": [_W, last, f(n * _W), f(states * _W), f(states * _W)],
        "_move_run": [n, 0, f(n), 0, f(n), 0, f(n), 0, f(n)],
    }


def _others(c: _Case) -> dict[str, dict[str, list[Any]]]:
    n, f, s, arcs, states = c.n, c.floats, c.small, c.arcs, c.states
    state, up, long = c.of("arc_state", "up", "long_pairs")
    first, fail, arc_ptr, label = c.of("first", "fail", "arc_ptr", "arc_label")
    entries = np.arange(0, 3 * n + 1, 3)
    return {
        "graph_tables": {"add_row": [f(n), 0.7, f(n)]},
        "group_model": {"_add_product": [f(4, n), 0, 4, f(4), f(n)], "_dot": [f(n), f(n)]},
        "hessian": {"_propagate": [f(n, 2 * n), f(n, n), n, f(n, 2 * n)]},
        "lbfgs": {"two_loop": [s(3, n), s(3, n), np.array([2, 0, 1]), f(n), np.arange(n) % 3 != 1, f(n)]},
        "one_sentence": {"add": [f(2 * n), n, 0.7, f(2 * n), n, n]},
        "pair_lanes": {
            "to_lanes": [f(3 * n), np.array([0, n, 2 * n]), f(3), 3, n, 4, f(4 * n)],
            "from_lanes": [f(4 * n), 3, n, 4, np.array([2, 0, 1]), f(3, n)],
            "sum_pairs": [3, np.array([0, 1, 4, 10]), c.below(3, 10), f(10), n, f(3 * n), f(3 * n)],
            "count_pairs": [3, np.array([0, 1, 4, 10]), c.below(3, 10), f(10), n, f(3 * n), f(3 * n), f(10)],
        },
        "pattern_alone": {
            "times_gain_alone": [n, first, f(n), f(states), f(states)],
            "label_sums_alone": [n, first, f(states), f(states), f(n)],
            "sum_row_alone": [
                n, fail, arc_ptr, up, state, long, f(arcs), f(n, n), f(states), 0, f(states), f(states),
            ],
            "take_arcs_alone": [
                n, fail, arc_ptr, up, state, long, f(arcs), f(n, n), f(states), f(states), 0, f(states), f(n, n),
                f(arcs),
            ],
        },
        "pattern_arcs": {
            "take_posteriors": [n, state, f(arcs), f(arcs * n), f(states * n), 0, f(states * n)],
            "arc_values": [n, state, f(arcs), f(states * n), 0, f(arcs * n)],
            "mass_of_arcs": [_W, n, fail, arc_ptr, up, f(states * _W), f(arcs * _W)],
        },
        "pattern_groups": {
            "scale_gain": [n, 3, f(3 * n), f(3 * n), f(2 * n), n],
            "_times_label": [n, 1, 2, 4, f(2 * n), f(4 * n), f(4 * n)],
        },
        "pattern_hessian": {"_add_scaled": [f(n), 0.7, n, f(n)]},
        "pattern_scan": {
            "conditional_rows": [n, 2, fail, arc_ptr, label, state, f(arcs), f(states * 2), f(states * 2 * n)]
        },
        "potentials": {
            "key_scores": [entries, c.below(n, 3 * n), c.below(5, 3 * n), f(3 * n), f(5), 0, n, f(n, n)],
            "node_scores": [1 + c.below(3, 6).reshape(3, 2), f(4, n), 0, 3, f(3 * n)],
        },
        "product_steps": {
            "move_forward": [f(n * n), f(n), 0, c.below(2, n), f(n), 0, n, n * n, n * n, False, False, f(2 * n * n), 0],
            "move_backward": [
                f(2 * n * n), 0, f(n), 0, c.below(2, n), f(n), 0, n, n * n, n * n, 0.7, False, False, f(n * n), 0,
            ],
            "pair_sums": [f(3 * n * n), f(3 * n * n), 0, 3, n * n, n, n, n, 0.7, f(n * n)],
            "square_pairs": [f(6 * n), f(6 * n), 0, 6, n, 0.7, f(n * n)],
            "sum_to_one": [f(n), 0, n],
            "label_sums": [f(3 * n), 0, f(3 * n), 3, n, n, n, f(n)],
        },
        "quadratic": {"_add_row": [f(n), 0.7, f(n)]},
        "sgd": {"_soft": [f(n), 0, n, 0.3], "_soft_step": [f(n), 0, n, f(n), 0, 0.1, 0.3]},
        "vectors": {
            "products": [f(n * n), 0, f(n), 0, f(n), 0, min(n, 32)],
            "dots": [f(n * n), 0, f(n), 0, f(n), 0, n],
        },
        "sparse_pairs": {"enter_classes": [f(3), f(n, 3), f(n)], "_add_one": [0.7, f(n)]},
        "weighted_pairs": {"_scaled": [f(n), f(n), 0.7, f(n)]},
    }  # fmt: skip


@cache
def _cases(n: int) -> dict[tuple[str, str], list[Any]]:
    c = _Case(n)
    rooms = _others(c) | {
        "chain": _chain(c), "dual_ascent": _dual_ascent(c), "gradient": _gradient(c), "pattern_lanes": _lanes(c),
        "pattern_levels": _levels(c),
    }  # fmt: skip
    return {(room, name): args for room, found in rooms.items() for name, args in found.items()}


# Those that take structures of arrays. They are written like their neighbours, and the first test reads them too.
_LEFT_OUT = {
    ("dual_ascent", "visit"), ("pairs", "pair_pass"), ("pattern_lanes", "_count_lost"), ("pattern_lanes", "_overlap"),
    ("pattern_groups", "_pull"), ("pattern_groups", "_push"), ("pattern_scan", "joint_rows"),
    *(("sparse_pairs", name) for name in ("pair_step", "count_from", "count_to")), ("cells", "scan_cells"),
    *(("token_rows", f"_add_{name}") for name in ("sparse", "table", "some")), ("token_rows", "_expand_values"),
    *(("token_rows", f"_sum_{name}") for name in ("sparse", "table")),
}  # fmt: skip


def test_all_are_called():
    """Or left out by name."""
    assert {(room, node.name) for room, node in _fast_kernels()} == set(_cases(3)) | _LEFT_OUT


def _placed(args: list[Any], order: list[int], gap: int, offset: int) -> list[Any]:
    """The arguments with their arrays in one block, in this order, so many numbers of 8 bytes apart."""
    arrays = {i: arg for i, arg in enumerate(args) if isinstance(arg, np.ndarray)}
    sizes = {i: -(-array.nbytes // 8) for i, array in arrays.items()}
    block = np.zeros(sum(sizes.values()) + gap * len(sizes) + 16)
    at = (-block.ctypes.data // 8) % 8 + offset  # from a multiple of 64 bytes
    placed = list(args)
    for i in order:
        array = arrays[i]
        placed[i] = block[at : at + sizes[i]].view(np.uint8)[: array.nbytes].view(array.dtype).reshape(array.shape)
        placed[i][...] = array
        at += sizes[i] + gap
    return placed


def _outcome(call: Callable[..., Any], args: list[Any]) -> bytes:
    """What it returns, and all that it wrote."""
    returned = np.array(call(*args), np.float64)
    return returned.tobytes() + b"".join(arg.tobytes() for arg in args if isinstance(arg, np.ndarray))


def _callable(room: str, name: str) -> Callable[..., Any]:
    """The kernel inlined into another, as it is in use; inner ones have no entry of their own."""
    inner = getattr(import_module(f"vcrf.kernels.{room}"), name)
    n_args = inner.py_func.__code__.co_argcount
    names = ", ".join(f"x{i}" for i in range(n_args))
    scope: dict[str, Any] = {"inner": inner}
    exec(f"def call({names}):\n    return inner({names})", scope)
    return kernel(scope["call"])


@pytest.mark.parametrize(("room", "name"), sorted(_cases(3)))
def test_the_same_bits_wherever_arrays_lie(room: str, name: str) -> None:
    """At all alignments, side by side and apart, in any order."""
    call = _callable(room, name)
    for n in (3, 8, 13, 17):  # with and without a rest after the last vector
        args = _cases(n)[room, name]
        arrays = [i for i, arg in enumerate(args) if isinstance(arg, np.ndarray)]
        expected = _outcome(call, _placed(args, arrays, 512, 0))
        orders = [arrays, arrays[::-1], arrays[1:] + arrays[:1]]
        places = [(0, offset) for offset in range(8)] + [(gap, 0) for gap in (1, 2, 3, 4, 8, 16)]
        for order in orders:
            for gap, offset in places:
                assert _outcome(call, _placed(args, order, gap, offset)) == expected, (n, order, gap, offset)
