"""Whether a change of the code changed a run: every round of many small trainings, to the last bit.

python benchmarks/traces.py --save before.json       # with the code as it was
python benchmarks/traces.py --against before.json    # with the new code: bit-equal, or the largest difference
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from vcrf import M3N, VCRF, StructSVM, VExponential, VStructBoost
from vcrf.compat import CRF
from vcrf.data import SyntheticLanguage

_BASE = {"base_strength": 0.02}
# What is trained: every surrogate, loss, norm, order and lattice, open labels, and weights beyond the scaled messages.
CONFIGURATIONS: dict[str, tuple[type, dict[str, Any]]] = {
    "default": (VCRF, {}),
    "l1, order 1": (VCRF, {**_BASE, "tags": 1}),
    "l1, order 2, tight": (VCRF, {**_BASE, "tol": 1e-7}),
    "l1, order 3, dense": (VCRF, {**_BASE, "tags": 3, "inference": "dense"}),
    "l1, order 4, patterns": (VCRF, {**_BASE, "tags": 4, "inference": "patterns"}),
    "elastic, hamming, patterns": (
        VCRF, {**_BASE, "norm": "elastic", "loss": "hamming", "tags": 3, "inference": "patterns"},
    ),
    "l2, ngram": (VCRF, {**_BASE, "norm": "l2", "loss": "ngram", "families": "paper", "words": 0, "affix": 1}),
    "l1, edit, order 3, patterns": (VCRF, {**_BASE, "loss": "edit:band=1", "tags": 3, "inference": "patterns"}),
    "group, crf": (VCRF, {**_BASE, "norm": "group"}),
    "group, patterns": (VCRF, {**_BASE, "norm": "group", "tags": 3, "inference": "patterns"}),
    "structboost, hamming": (VStructBoost, {**_BASE, "tol": 1e-5}),
    "structboost, edit, patterns": (VStructBoost, {**_BASE, "loss": "edit:band=1", "tags": 3, "inference": "patterns"}),
    "structboost, group": (VStructBoost, {**_BASE, "norm": "group"}),
    "exponential, none": (VExponential, {**_BASE, "loss": None, "tol": 1e-5}),
    "exponential, ngram": (VExponential, {**_BASE, "loss": "ngram", "norm": "elastic"}),
    "m3n, l1": (M3N, _BASE),
    "m3n, l2": (M3N, {**_BASE, "norm": "l2"}),
    "m3n, ngram, elastic, patterns": (
        M3N, {**_BASE, "loss": "ngram", "norm": "elastic", "tags": 3, "inference": "patterns"},
    ),
    "m3n, group": (M3N, {**_BASE, "norm": "group"}),
    "structsvm, l1": (StructSVM, _BASE),
    "structsvm, l2, patterns": (StructSVM, {**_BASE, "norm": "l2", "tags": 3, "inference": "patterns"}),
    "open labels": (VCRF, {**_BASE, "norm": "elastic"}),
    "weights of hundreds": (VCRF, {"base_strength": 1e-9, "tol": 1e-2, "max_passes": 200}),
    "weights of hundreds, patterns": (
        VCRF, {"base_strength": 1e-9, "tol": 1e-2, "max_passes": 200, "tags": 3, "inference": "patterns"},
    ),
    "drop-in": (CRF, {"c1": 0.1, "c2": 0.01}),
}  # fmt: skip


def trace(name: str) -> dict[str, Any]:
    """Every round's objective and gap, and the weights, as hexadecimal numbers."""
    kind, parameters = CONFIGURATIONS[name]
    corpus = SyntheticLanguage(n_labels=4, n_stems=40, seed=3).sample(40, seed=4)
    X, y = corpus.tokens, [list(labels) for labels in corpus.labels]
    if name == "open labels":
        y = [[None if (i + t) % 5 == 0 else label for t, label in enumerate(labels)] for i, labels in enumerate(y)]
    if "hundreds" in name:
        X, y = X[:6], y[:6]
    if kind is CRF:
        X = [[{"w": w, "end": w[-2:], "long": len(w) > 6} for w in tokens] for tokens in X]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = kind(**parameters).fit(X, y).result_
    return {
        "rounds": [[r.n_passes, r.objective.hex(), float(r.gap).hex(), r.n_active, r.phase] for r in result.history],
        "features": result.features.tolist(),
        "weights": [w.hex() for w in result.weights.tolist()],
    }


def difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """How two traces differ."""
    if old == new:
        return "bit-equal"
    if [r[0] for r in old["rounds"]] != [r[0] for r in new["rounds"]]:
        last = [float.fromhex(t["rounds"][-1][1]) for t in (old, new)]
        return f"OTHER STEPS: {old['rounds'][-1][0]} and {new['rounds'][-1][0]} passes, objectives {last[0]} {last[1]}"
    pairs = [(float.fromhex(a[1]), float.fromhex(b[1])) for a, b in zip(old["rounds"], new["rounds"], strict=True)]
    return f"relative difference {max(abs(a - b) / abs(a) for a, b in pairs):.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    given = parser.parse_args()
    before = json.loads(given.against.read_text(encoding="utf-8")) if given.against else {}
    found, is_equal = {}, True
    for name in CONFIGURATIONS:
        began = time.perf_counter()
        found[name] = trace(name)
        said = difference(before[name], found[name]) if name in before else ""
        is_equal &= said in ("", "bit-equal")
        last = found[name]["rounds"][-1]
        print(f"{name:<32} {last[0]:>6} passes {time.perf_counter() - began:>6.1f} s  {said}", flush=True)
    if given.save:
        given.save.write_text(json.dumps(found), encoding="utf-8")
    sys.exit(not is_equal)


if __name__ == "__main__":
    main()
