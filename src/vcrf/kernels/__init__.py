"""Compiled loops; nothing else imports numba.

A module of kernels is imported when it is first used, `kernels.gradient.scan_labels(...)`: numba takes longer to import
than most commands take to answer.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vcrf.kernels import (
        automaton,
        blocks,
        chain,
        compiling,
        corrections,
        cuts,
        decode,
        exchange,
        exponential,
        frontier,
        gradient,
        group_cuts,
        group_model,
        hashing,
        hessian,
        lbfgs,
        log_domain,
        lookup3,
        margin,
        merging,
        pattern_arcs,
        pattern_changes,
        pattern_counts,
        pattern_decode,
        pattern_hessian,
        pattern_lanes,
        pattern_levels,
        pattern_max,
        pattern_pass,
        pattern_rows,
        pattern_scan,
        patterns,
        penalty,
        posterior,
        potentials,
        product,
        product_max,
        product_steps,
        quadratic,
        rademacher,
        residuals,
        sentence_gradients,
        simplex_cuts,
        strings,
        vectors,
        words,
    )

__all__ = [
    "automaton",
    "blocks",
    "chain",
    "compiling",
    "corrections",
    "cuts",
    "decode",
    "exchange",
    "exponential",
    "frontier",
    "gradient",
    "group_cuts",
    "group_model",
    "hashing",
    "hessian",
    "lbfgs",
    "log_domain",
    "lookup3",
    "margin",
    "merging",
    "pattern_arcs",
    "pattern_changes",
    "pattern_counts",
    "pattern_decode",
    "pattern_hessian",
    "pattern_lanes",
    "pattern_levels",
    "pattern_max",
    "pattern_pass",
    "pattern_rows",
    "pattern_scan",
    "patterns",
    "penalty",
    "posterior",
    "potentials",
    "product",
    "product_max",
    "product_steps",
    "quadratic",
    "rademacher",
    "residuals",
    "sentence_gradients",
    "simplex_cuts",
    "strings",
    "vectors",
    "words",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
