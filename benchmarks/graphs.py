"""Graphs beside classifiers that look at one node at a time: snakes, letters, scene, dependency trees; and growth.

    python benchmarks/graphs.py [snakes widths letters scene tamil basque growth] [--sentences 5396] [--jobs 2]

Prints Markdown tables, row by row as points end. Every strength is chosen on the training part alone: on folds, or on
examples held out of it; the test part is labelled once with the chosen one. Classifiers of scikit-learn read the
features of the nodes alone, with C chosen by cross-validation on the training part. Seconds are those of the processor,
of the last fit, without compiling. The data are read from `../shared/data/graphs`.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import hamming_loss, make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from vcrf import Graph, GraphCRF, MultiLabelCRF
from vcrf.estimators.graph_data import graph_loss, read_sample
from vcrf.graphs import from_grid, read_trees
from vcrf.graphs.inference import GraphInference
from vcrf.graphs.kinds import PartKind, PartKinds
from vcrf.graphs.layout import Skeleton, make_layout
from vcrf.losses import get_loss
from vcrf.metrics import compare

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "graphs"
HEADER = "| {what} | strength | errors | accuracy % | proven | cpu s | passes | relative gap |\n|" + "---|" * 8


def n_errors(found: Sequence[Sequence[Any]], true: Sequence[Sequence[Any]]) -> int:
    return sum(a != b for x, y in zip(found, true, strict=True) for a, b in zip(x, y, strict=True))


def take(items: Sequence[Any], which: Any) -> list[Any]:
    return [items[i] for i in which]


def chosen_strength(
    make: Callable[[float], GraphCRF],
    X: Sequence[Any],
    y: Sequence[Any],
    strengths: Sequence[float],
    groups: Any = None,
) -> float:
    """The strength with the fewest errors on a fourth of the training part (of its groups), trained on the others."""
    if len(strengths) == 1:
        return strengths[0]
    groups = np.arange(len(X)) if groups is None else np.asarray(groups)
    names = np.unique(groups)
    held = np.isin(groups, np.random.default_rng(0).permutation(names)[: max(1, len(names) // 4)])
    train, rest = np.flatnonzero(~held), np.flatnonzero(held)
    errors = []
    for strength in strengths:
        crf = make(strength).fit(take(X, train), take(y, train))
        errors.append(n_errors(crf.predict(take(X, rest)), take(y, rest)))
    print(f"<!-- held out: {dict(zip(strengths, errors, strict=True))} -->", flush=True)
    return strengths[int(np.argmin(errors))]


def row(name: str, crf: GraphCRF, X: Sequence[Any], y: Sequence[Any], seconds: float) -> list[list[Any]]:
    """Label the test part, print a row, give the labels back."""
    found = crf.certify(X)
    wrong, total = n_errors([one.labels for one in found], y), sum(map(len, y))
    print(
        f"| {name} | {crf.base_strength_:.3g} | {wrong} of {total} | {100 * (1 - wrong / total):.2f} "
        f"| {sum(one.is_proven for one in found)} of {len(found)} | {seconds:.1f} | {crf.result_.n_passes} "
        f"| {crf.gap_ / crf.objective_:.1e}{' (relaxed)' if crf.is_relaxed_ else ''} |",
        flush=True,
    )
    return [one.labels for one in found]


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    return fit(), time.process_time() - began


def peers(X: Any, y: Any, X_test: Any, y_test: Any, sizes: Sequence[int] | None = None) -> dict[str, list[list[Any]]]:
    """Rows of scikit-learn's classifiers of single nodes; their labels, cut into examples."""
    out = {}
    for name, peer in {
        "LogisticRegression": LogisticRegression(max_iter=300),
        "LinearSVC": LinearSVC(dual="auto"),
    }.items():
        search = GridSearchCV(peer, {"C": [0.01, 0.1, 1.0]}, cv=3).fit(X, y)
        model, seconds = timed(lambda best=search.best_estimator_: best.fit(X, y))
        found = model.predict(X_test)
        wrong = int((found != y_test).sum())
        print(
            f"| scikit-learn's {name}, C = {search.best_params_['C']:g} | | {wrong} of {len(y_test)} "
            f"| {100 * (1 - wrong / len(y_test)):.2f} | | {seconds:.1f} | | |",
            flush=True,
        )
        cuts = np.cumsum(sizes)[:-1] if sizes is not None else []
        out[name] = [part.tolist() for part in np.split(found, cuts)]
    return out


# ------------------------------------------------------------------------------------ snakes


def snakes(part: str) -> tuple[list[Graph], list[list[int]]]:
    """Colours of the 3x3 cells around each as flags; edges have those of both ends."""
    data = np.load(DATA / "snakes.npz")
    colours = np.unique(data["pixels_train"], axis=0)
    flags, graphs, labels, at = np.eye(len(colours) + 1), [], [], 0
    for n_rows, n_columns in data[f"shapes_{part}"].tolist():
        own = slice(at, at + n_rows * n_columns)
        at = own.stop
        numbers = (data[f"pixels_{part}"][own, None] == colours).all(axis=2).argmax(axis=1)
        padded = np.full((n_rows + 2, n_columns + 2), len(colours))
        padded[1:-1, 1:-1] = numbers.reshape(n_rows, n_columns)
        around = [flags[padded[a : a + n_rows, b : b + n_columns]] for a in range(3) for b in range(3)]
        graphs.append(from_grid(np.concatenate(around, axis=2), edge_features="ends"))
        labels.append(data[f"labels_{part}"][own].tolist())
    return graphs, labels


def run_snakes(options: argparse.Namespace) -> None:
    (X, y), (X_test, y_test) = snakes("train"), snakes("test")
    print(HEADER.format(what="snakes: 200 grids, 11 labels, tested on 100"))

    def make(strength: float) -> GraphCRF:
        return GraphCRF(base_strength=strength, norm="l2", block_width=1, max_table=2000, tol=1e-2, n_jobs=options.jobs)

    strengths = (3e-4, 1e-3, 3e-3) if options.strength is None else (options.strength,)
    strength = chosen_strength(make, X, y, strengths)
    began = time.perf_counter()
    crf, seconds = timed(lambda: make(strength).fit(X, y))
    print(
        f"<!-- {time.perf_counter() - began:.1f} s of the clock at a load of {os.getloadavg()[0]:.1f} -->", flush=True
    )
    row("grid, features on edges", crf, X_test, y_test, seconds)
    nodes, test_nodes = (np.concatenate([graph.nodes for graph in graphs]) for graphs in (X, X_test))
    peers(nodes, np.concatenate(y), test_nodes, np.concatenate(y_test))


def run_widths(options: argparse.Namespace) -> None:
    """Grids of shorter side 4: exact sums, and strips of 1 to 3 rows and columns; the exact objective of each."""
    (X, y), (X_test, y_test) = (
        (take(graphs, at), take(labels, at)) for graphs, labels, at in map(_narrow, ("train", "test"))
    )
    print(f"| snakes of shorter side 4: {len(X)} grids | objective | exact objective | slack | errors | cpu s a pass |")
    print("|" + "---|" * 6)
    for name, width, max_table in (*((f"width {k}", k, 11**4) for k in (1, 2, 3)), ("exact", 1, 11**5)):
        crf = GraphCRF(
            norm="l2", base_strength=1e-3, block_width=width, max_table=max_table, tol=1e-2, n_jobs=options.jobs
        )
        crf, seconds = timed(lambda crf=crf: crf.fit(X, y))
        exact = exact_objective(crf, X, y)
        wrong = n_errors(crf.predict(X_test), y_test)
        print(
            f"| {name} | {crf.objective_:.4f} | {exact:.4f} | {crf.objective_ - exact:.4f} "
            f"| {wrong} of {sum(map(len, y_test))} | {seconds / crf.result_.n_passes:.3f} |",
            flush=True,
        )


def _narrow(part: str) -> tuple[list[Graph], list[list[int]], list[int]]:
    shapes = np.load(DATA / "snakes.npz")[f"shapes_{part}"]
    return (*snakes(part), np.flatnonzero(shapes.min(axis=1) == 4).tolist())


def exact_objective(crf: GraphCRF, X: Sequence[Graph], y: Sequence[Any]) -> float:
    """What GraphCRF minimises, without relaxation, at the weights of a model trained with norm l2."""
    data = read_sample(X, y, crf.model_, 11**5, 1)
    infer = GraphInference(data.problem.layout)
    loss, scores = graph_loss(get_loss(crf.loss_), data), crf.model_.scores(data.problem.text, data.problem.layout)
    values = infer.values(loss.added_to(scores), infer.no_messages(), 0)[0]
    truth = infer.score(scores, data.problem.y.astype(np.int64))
    infer.close()
    return float((values - truth).mean() + 0.5 * crf.base_strength_ * (crf.model_.weights**2).sum())


# ------------------------------------------------------------------------------------ letters


def run_letters(options: argparse.Namespace) -> None:
    data = np.load(DATA / "letters.npz")
    pixels = np.unpackbits(data["pixels"], axis=1).reshape(len(data["labels"]), -1)[:, :128].astype(np.float64)
    ptr = data["ptr"].tolist()
    X = [Graph(pixels[a:b], np.column_stack([np.arange(b - a - 1), np.arange(1, b - a)])) for a, b in pairwise(ptr)]
    y = [data["labels"][a:b].tolist() for a, b in pairwise(ptr)]
    words = np.unique(["".join(chr(97 + c) for c in labels) for labels in y], return_inverse=True)[1]
    is_train = data["fold"] == 1
    _letters("letters: fold 1, tested on the others", X, y, is_train, None, options)
    rng = np.random.default_rng(0)
    unseen = np.isin(words, rng.permutation(words.max() + 1)[:11])
    train = rng.permutation(np.flatnonzero(~unseen))[: int(is_train.sum())]
    by_word = np.isin(np.arange(len(X)), train)
    keep = np.flatnonzero(by_word | unseen)
    title = f"letters by word: tested on 11 words that are not in training ({by_word.sum()} examples of 44 others)"
    _letters(title, take(X, keep), take(y, keep), by_word[keep], words[keep], options)


def _letters(title: str, X: list[Graph], y: list[Any], is_train: Any, words: Any, options: argparse.Namespace) -> None:
    train, test = np.flatnonzero(is_train), np.flatnonzero(~is_train)
    print(HEADER.format(what=title))

    def make(strength: float) -> GraphCRF:
        return GraphCRF(base_strength=strength, norm="l2", tol=1e-2, n_jobs=options.jobs)

    mine = take(X, train), take(y, train)
    strength = chosen_strength(make, *mine, (3e-3, 1e-2, 3e-2, 1e-1), None if words is None else words[train])
    crf, seconds = timed(lambda: make(strength).fit(*mine))
    row("chain", crf, take(X, test), take(y, test), seconds)
    nodes = [np.concatenate([X[i].nodes for i in which]) for which in (train, test)]
    labels = [np.concatenate(take(y, which)) for which in (train, test)]
    peers(nodes[0], labels[0], nodes[1], labels[1])


# ------------------------------------------------------------------------------------ scene


def run_scene(options: argparse.Namespace) -> None:
    data = np.load(DATA / "scene.npz")
    X, y, X_test, y_test = (data[name].astype(np.float64) for name in ("X_train", "y_train", "X_test", "y_test"))
    print("| scene: 1211 images, 6 labels, tested on 1196 | strength | Hamming error % (map, marginals) ", end="")
    print("| exact match % (map, marginals) | cpu s | relative gap |\n|" + "---|" * 6)
    # The same measure decides for all, on three folds of the training part; shuffled, for its images are sorted.
    folds = {
        "cv": KFold(3, shuffle=True, random_state=0),
        "scoring": make_scorer(hamming_loss, greater_is_better=False),
    }
    grid = {"base_strength": [3e-4, 1e-3, 3e-3]}
    for edges in ("none", "tree", "full"):
        crf = MultiLabelCRF(edges, tol=1e-2, n_jobs=options.jobs)
        strength = GridSearchCV(crf, grid, **folds).fit(X, y).best_params_["base_strength"]
        crf.set_params(base_strength=strength)
        crf, seconds = timed(lambda crf=crf: crf.fit(X, y))
        found = [crf.set_params(decode=decode).predict(X_test) for decode in ("map", "marginals")]
        _scene_row(f"MultiLabelCRF, {edges}", found, y_test, f"{strength:g}", seconds, crf.gap_ / crf.objective_)
    scaled, scaled_test = ((rows - X.mean(axis=0)) / X.std(axis=0) for rows in (X, X_test))
    for name, peer in {"LogisticRegression": LogisticRegression(max_iter=1000), "LinearSVC": LinearSVC()}.items():
        rest = OneVsRestClassifier(peer)
        search = GridSearchCV(rest, {"estimator__C": [1e-4, 1e-3, 1e-2, 0.1]}, **folds).fit(scaled, y)
        model, seconds = timed(lambda best=search.best_estimator_: best.fit(scaled, y))
        found, C = [model.predict(scaled_test)], search.best_params_["estimator__C"]
        _scene_row(f"scikit-learn's {name}", found, y_test, f"C = {C:g}", seconds)


def _scene_row(name: str, found: list[Any], y: Any, strength: str, seconds: float, gap: float | None = None) -> None:
    wrong = ", ".join(f"{100 * (labels != y).mean():.2f}" for labels in found)
    exact = ", ".join(f"{100 * (labels == y).all(axis=1).mean():.1f}" for labels in found)
    shown = "" if gap is None else f"{gap:.1e}"
    print(f"| {name} | {strength} | {wrong} | {exact} | {seconds:.1f} | {shown} |", flush=True)


# ------------------------------------------------------------------------------------ trees


def run_trees(name: str, options: argparse.Namespace) -> None:
    path = DATA / f"{name}-trees.conllu.gz"
    found, nodes, labels = {}, {}, {}
    n = options.sentences
    for edges in ("none", "chain", "tree"):
        parts = {split: read_trees(path, "deprel", split, edges) for split in ("train", "test")}
        X, y = parts["train"].graphs[:n], parts["train"].labels[:n]
        X_test, y_test = parts["test"].graphs, parts["test"].labels
        if edges == "none":
            print(HEADER.format(what=f"DEPREL of {name}: {len(X)} sentences, tested on {len(X_test)}"))
            nodes = {"train": X, "test": X_test}
            labels = {"train": y, "test": y_test}

        def make(strength: float) -> GraphCRF:
            return GraphCRF(base_strength=strength, norm="elastic", tol=1e-2, n_jobs=options.jobs)

        strengths = [c / len(X) for c in ((0.1, 0.3) if options.strength is None else (options.strength,))]
        strength = chosen_strength(make, X, y, strengths)
        crf, seconds = timed(lambda make=make, strength=strength, X=X, y=y: make(strength).fit(X, y))
        found[edges] = row({"none": "independent"}.get(edges, edges), crf, X_test, y_test, seconds)
    _tree_peers(nodes, labels, found)
    true = labels["test"]
    for a, b in (("LogisticRegression", "tree"), ("LinearSVC", "tree"), ("none", "tree"), ("chain", "tree")):
        if a in found:
            test = compare(true, found[a], found[b])
            print(
                f"<!-- {a} less {b}: {100 * test.difference:.2f} points of error "
                f"[{100 * test.low:.2f}, {100 * test.high:.2f}], p = {test.p_value:.2g} over sentences -->"
            )


def _tree_peers(nodes: dict[str, list[Graph]], labels: dict[str, list[Any]], found: dict[str, Any]) -> None:
    vectors = DictVectorizer()
    flat = {part: [node for graph in graphs for node in graph.nodes] for part, graphs in nodes.items()}
    X, X_test = vectors.fit_transform(flat["train"]), vectors.transform(flat["test"])
    for matrix in (X, X_test):  # LinearSVC takes no other indices
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    y, y_test = (np.concatenate(labels[part]) for part in ("train", "test"))
    found.update(peers(X, y, X_test, y_test, [len(one) for one in labels["test"]]))


# ------------------------------------------------------------------------------------ growth


def seconds_of_a_pass(n_rows: int, n_columns: int, n_labels: int, max_table: int, block_width: int = 1) -> float:
    """Processor time of sums and marginals of a grid, the best of five."""
    kinds = PartKinds(("node",), (tuple(range(n_labels)),), (PartKind("node", (0,)), PartKind("edge", (0, 0))))
    graph = from_grid(np.zeros((n_rows, n_columns)))
    scopes = [(v,) for v in range(graph.n_nodes)] + list(map(tuple, graph.edges.tolist()))
    skeleton = Skeleton(
        np.zeros(graph.n_nodes, np.int64), np.array([len(scope) for scope in scopes], np.int64), tuple(scopes)
    )
    infer = GraphInference(make_layout(kinds, [skeleton], max_table, block_width))
    scores = np.random.default_rng(0).normal(size=infer.n_scores)
    infer.marginals(scores, infer.no_messages(), 1)
    times = []
    for _ in range(5):
        began = time.process_time()
        infer.marginals(scores, infer.no_messages(), 1)
        times.append(time.process_time() - began)
    infer.close()
    return min(times)


def run_growth(options: argparse.Namespace) -> None:  # noqa: ARG001 - one thread
    print("| growth of a pass | points | seconds | slope |\n|" + "---|" * 4)
    cases: dict[str, tuple[list[int], Callable[[int], float], bool]] = {
        "nodes of a chain, 12 labels (log-log)": (
            [500, 1000, 2000, 4000], lambda n: seconds_of_a_pass(1, n, 12, 10**7), True),
        "nodes of a relaxed grid, 12 labels (log-log)": (
            [64, 256, 1024], lambda n: seconds_of_a_pass(int(n**0.5), int(n**0.5), 12, 1000), True),
        "labels of a chain of 500 (log-log)": (
            [8, 16, 32, 64], lambda k: seconds_of_a_pass(1, 500, k, 10**7), True),
        "rows of an exact grid, 4 labels, 30 columns (log by base 4 a row)": (
            [3, 4, 5, 6, 7], lambda w: seconds_of_a_pass(w, 30, 4, 10**7) / w, False),
    }  # fmt: skip
    for name, (points, measure, is_power) in cases.items():
        times = [measure(point) for point in points]
        x = np.log(points) if is_power else np.array(points) * np.log(4)
        slope = np.polyfit(x, np.log(times), 1)[0]
        shown = ", ".join(f"{t:.2g}" for t in times)
        print(f"| {name} | {', '.join(map(str, points))} | {shown} | {slope:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", default=["snakes", "widths", "letters", "scene", "tamil", "basque", "growth"]
    )
    parser.add_argument("--sentences", type=int, help="of the treebank's training part; all by default")
    parser.add_argument("--strength", type=float, help="of trees, times sentences, or of snakes; chosen by default")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = {
        "snakes": run_snakes,
        "widths": run_widths,
        "letters": run_letters,
        "scene": run_scene,
        "growth": run_growth,
    }
    for name in options.names:
        runs[name](options) if name in runs else run_trees(name, options)
        print()


if __name__ == "__main__":
    main()
