"""The tables of docs/claim.md and docs/reproduce.md from the folders of results/: nothing is trained.

    python benchmarks/claim_tables.py             # print all
    python benchmarks/claim_tables.py --write     # put them into their blocks, with commands and versions

Each table has a name, the folders that it reads, and a function. A folder has `points.csv` of `vcrf reproduce` or
`errors.csv` of `benchmarks/protocol.py`, and `run.json`: command, version, commit, machine, processor minutes.
`tests/test_claim.py` fails when a page shows another table than results/ gives.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "benchmarks")]

import figure_blocks  # noqa: E402
from claim_picture import Cells, read  # noqa: E402

from vcrf.experiments import paper  # noqa: E402
from vcrf.experiments.comparison import Difference, Summary, choose, difference, l1_crf, spread  # noqa: E402
from vcrf.experiments.datasets import KNOWN  # noqa: E402
from vcrf.experiments.plan import Cell  # noqa: E402
from vcrf.experiments.tasks import PathPoint  # noqa: E402

RESULTS = ROOT / "results"
NAMES = {name: known.paper_name for name, known in KNOWN.items()}
Rows = list[list[str]]
Runs = dict[int, list[PathPoint]]


class Block(NamedTuple):
    """A table of a page."""

    folders: tuple[str, ...]
    rows: Callable[..., Rows]


def points(folder: str, noise: bool = False) -> Cells:
    """Points of a folder's runs, with or without noise in the training labels."""
    return {cell: runs for cell, runs in read(RESULTS / folder / "points.csv").items() if (cell.noise > 0.0) == noise}


def datasets(cells: Iterable[Cell]) -> list[str]:
    """In the paper's order of names."""
    return sorted({cell.dataset for cell in cells}, key=lambda name: NAMES.get(name, name))


def runs_of(cells: Cells, dataset: str, method: str) -> Runs:
    return next((runs for cell, runs in cells.items() if cell[:2] == (dataset, method)), {})


def at(runs: Runs, complexity: float, base: float) -> Summary:
    """The models of one point of the grid."""
    pair = complexity, base
    return Summary([p for found in runs.values() for p in found if (p.complexity_strength, p.base_strength) == pair])


def chosen(runs: Runs, is_crf: bool = False, among: Sequence[float] = ()) -> Summary:
    """The models that validation chooses; `among` leaves the strengths (0 apart) that a grid has."""
    kept = [
        [p for p in found if not among or {p.complexity_strength, p.base_strength} <= {0.0, *among}]
        for found in runs.values()
    ]
    return Summary([choose(l1_crf(found) if is_crf else found) for found in kept])


def error(side: Summary) -> str:
    mean, sd = spread(side.token)
    return f"{mean:.2f} ± {sd:.2f}" if len(side.chosen) > 1 else f"{mean:.2f}"


def plain(side: Summary) -> str:
    return f"{spread(side.token)[0]:.2f}"


def count(side: Summary, name: str) -> str:
    return f"{side.mean(name):,.0f}"


def rounded(number: float) -> str:
    """Two digits."""
    return f"{float(f'{number:.2g}'):,.0f}"


def tested(found: Difference) -> list[str]:
    """Interval, runs, both p; of a single run its difference."""
    if len(found.values) < 2:
        return [f"{found.mean:+.2f}", f"{found.n_better} of 1", ""]
    p = ", ".join("-" if value is None else f"{value:.2g}" for value in (found.p_value, found.p_overlap))
    return [
        f"{found.mean:+.2f} ({found.low:+.2f} to {found.high:+.2f})", f"{found.n_better} of {len(found.values)}", p,
    ]  # fmt: skip


def at_strengths(*folders: str) -> Rows:
    """Equal strengths, nothing chosen: L1-CRF at base strength s, the others at complexity strength s / mean."""
    head = [
        "data", "s", "L1-CRF", "ties", "VCRF", "VCRF less L1-CRF (95 %)", "better in", "p",
        "weights, L1-CRF / VCRF", "attributes with twins, L1-CRF / ties / VCRF", "largest gap",
    ]  # fmt: skip
    rows = []
    for folder in folders:
        cells = points(folder)
        for name in datasets(cells):
            ours, ties = runs_of(cells, name, "paper"), runs_of(cells, name, "ties")
            for s in strengths_of(ours):
                crf, vcrf = at(ours, 0.0, s), at(ours, s, 0.0)
                tie = at(ties, s, 0.0) if ties else None
                sides = [side for side in (crf, tie, vcrf) if side is not None]
                gap = max(p.gap / p.objective for side in sides for p in side.chosen if p.gap is not None)
                attributes = " / ".join(count(side, "n_attributes") if side else "-" for side in (crf, tie, vcrf))
                rows.append(
                    [
                        *(NAMES[name], f"{s:g}", error(crf), beside(tie, crf), error(vcrf)),
                        *tested(difference(vcrf.token, crf.token)),
                        f"{count(crf, 'n_active')} / {count(vcrf, 'n_active')}", attributes, f"{gap:.1e}",
                    ]
                )  # fmt: skip
    return [head, *rows]


def beside(theirs: Summary | None, own: Summary) -> str:
    """The error of a control; of fewer runs than the L1-CRF has, its difference to the same runs of that."""
    if theirs is None:
        return "-"
    n = len(theirs.chosen)
    return error(theirs) if n == len(own.chosen) else f"L1-CRF {(theirs.token - own.token[:n]).mean():+.2f} (run 0)"


def at_weights(*folders: str) -> Rows:
    """Equal numbers of weights: VCRF against the L1-CRF's error at as many, read off each run's own curve.

    Between two of its strengths the curve is a line in the logarithm of the number of weights (twins counted once).
    Runs whose VCRF has fewer or more weights than all points of the L1-CRF are left out.
    """
    head = ["data", "s of VCRF", "weights", "L1-CRF, as many", "VCRF", "VCRF less L1-CRF (95 %)", "better in", "p"]
    rows = []
    for folder in folders:
        cells = points(folder)
        for name in datasets(cells):
            ours = runs_of(cells, name, "paper")
            for s in strengths_of(ours):
                pairs = [pair for found in ours.values() if (pair := _as_sparse(found, s)) is not None]
                if len(pairs) == len(ours):
                    weights, theirs, mine = (np.array(column) for column in zip(*pairs, strict=True))
                    found = tested(difference(mine, theirs))
                    errors = f"{theirs.mean():.2f}", f"{mine.mean():.2f}"
                    rows.append([NAMES[name], f"{s:g}", f"{weights.mean():,.0f}", *errors, *found])
    return [head, *rows]


def _as_sparse(found: list[PathPoint], s: float) -> tuple[float, float, float] | None:
    """Weights of VCRF at a strength, the error of an L1-CRF with so many, and its own."""
    (vcrf,) = (p for p in found if (p.complexity_strength, p.base_strength) == (s, 0.0))
    curve = sorted((p for p in found if p.complexity_strength == 0.0 < p.base_strength), key=lambda p: p.n_active)
    sizes = [p.n_active for p in curve]
    if not sizes[0] <= vcrf.n_active <= sizes[-1]:
        return None
    errors = [100.0 * p.test_wrong / p.test_tokens for p in curve]
    theirs = float(np.interp(np.log(vcrf.n_active), np.log(sizes), errors))
    return vcrf.n_active, theirs, 100.0 * vcrf.test_wrong / vcrf.test_tokens


def over_sets(folder: str) -> Rows:
    """VCRF less L1-CRF on each data set, at equal strengths and at equal numbers of weights; their mean."""
    cells = points(folder)
    found = {name: runs_of(cells, name, "paper") for name in datasets(cells)}
    strengths = strengths_of(next(iter(found.values())))
    head = ["data", "runs"]
    columns: list[dict[str, float]] = []
    for s in strengths:
        head.append(f"equal s = {s:g}")
        columns.append(
            {n: float((at(runs, s, 0.0).token - at(runs, 0.0, s).token).mean()) for n, runs in found.items()}
        )
        sparse = {n: [_as_sparse(run, s) for run in runs.values()] for n, runs in found.items()}
        if all(None not in pairs for pairs in sparse.values()):
            head.append(f"as many weights as VCRF at {s:g}")
            columns.append({n: float(np.mean([p[2] - p[1] for p in pairs if p])) for n, pairs in sparse.items()})
    rows = [
        [NAMES[name], str(len(runs)), *(f"{column[name]:+.2f}" for column in columns)] for name, runs in found.items()
    ]
    means = [difference(np.array(list(column.values())), np.zeros(len(column))) for column in columns]
    rows.append(["mean (95 % over sets)", "", *(f"{d.mean:+.2f} ({d.low:+.2f} to {d.high:+.2f})" for d in means)])
    rows.append(["better in, p", "", *(f"{d.n_better} of {len(d.values)}, {d.p_value:.2g}" for d in means)])
    return [head, *rows]


def strengths_of(runs: Runs) -> list[float]:
    """Complexity strengths above zero, from strong to weak."""
    return sorted({p.complexity_strength for found in runs.values() for p in found} - {0.0}, reverse=True)


def on_validation(*folders: str) -> Rows:
    """The same points, chosen on validation."""
    head = ["data", "L1-CRF", "ties", "VCRF", "VCRF less L1-CRF (95 %)", "better in", "p"]
    rows = []
    for folder in folders:
        cells = points(folder)
        for name in datasets(cells):
            ours, ties = runs_of(cells, name, "paper"), runs_of(cells, name, "ties")
            crf, vcrf = chosen(ours, is_crf=True), chosen(ours)
            rows.append(
                [
                    *(NAMES[name], error(crf), beside(chosen(ties) if ties else None, crf), error(vcrf)),
                    *tested(difference(vcrf.token, crf.token)),
                ]
            )
    return [head, *rows]


def by_steps(*folders: str) -> Rows:
    """The paper's steps, chosen on validation, beside the paper's table."""
    head = [
        "data", "", "token error", "features with twins", "less L1-CRF (95 %)", "better in", "p",
        "the paper: error, features",
    ]  # fmt: skip
    rows = []
    for folder in folders:
        cells = points(folder)
        for name in datasets(cells):
            ours, uniform = runs_of(cells, name, "paper"), runs_of(cells, name, "uniform")
            crf, vcrf, control = chosen(ours, is_crf=True), chosen(ours), chosen(uniform)
            result, features = paper.RESULTS[NAMES[name]], paper.FEATURES[NAMES[name]]
            of_paper = [
                f"{side.mean:.2f} ± {side.sd:.2f}, {rounded(number)}"
                for side, number in zip((result.vcrf_token, result.crf_token), features, strict=True)
            ]
            for title, side, theirs in (("VCRF", vcrf, of_paper[0]), ("uniform", control, "")):
                found = tested(difference(side.token, crf.token))
                rows.append([NAMES[name], title, error(side), rounded(side.mean("n_features")), *found, theirs])
            at_first = len(rows) - 2
            features_crf = rounded(crf.mean("n_features"))
            rows.insert(at_first, [NAMES[name], "L1-CRF", error(crf), features_crf, "", "", "", of_paper[1]])
            found = tested(difference(vcrf.token, control.token))
            rows.append([NAMES[name], "VCRF less uniform", "", "", *found, ""])
    return [head, *rows]


def settings(folder: str) -> dict[str, dict[str, str]]:
    """Rule, kappa and eta of every method of a folder, from its command."""
    words = shlex.split(_run(folder)["command"])
    given = dict(itertools.pairwise(words))
    base = {key: given.get(f"--{key}", usual) for key, usual in (("rule", "fobos"), ("kappa", "1"), ("eta", "0.01"))}
    found = {"paper": base}
    for spec in (word for option, word in itertools.pairwise(words) if option == "--method"):
        head, *pairs = spec.split()
        name, _, origin = head.partition("=")
        found[name] = found[origin] | dict(pair.replace('"', "").split("=") for pair in pairs)
    return found


def by_setting(folder: str) -> Rows:
    """The paper's steps with each rule, kappa and eta, chosen on validation, in one run."""
    head = [
        "rule", "kappa", "eta", "no penalty", "L1-CRF", "beta", "VCRF", "lambda, beta", "VCRF less L1-CRF",
        "features with twins, L1-CRF / VCRF",
    ]  # fmt: skip
    cells, known = points(folder), settings(folder)
    (data,) = datasets(cells)
    rows = []
    for name, facts in known.items():
        runs = runs_of(cells, data, name)
        crf, vcrf = chosen(runs, is_crf=True), chosen(runs)
        (beta,), (pair,) = ([(p.complexity_strength, p.base_strength) for p in side.chosen] for side in (crf, vcrf))
        rows.append(
            [
                *(facts[key] for key in ("rule", "kappa", "eta")), plain(at(runs, 0.0, 0.0)), plain(crf),
                f"{beta[1]:g}", plain(vcrf), f"{pair[0]:g}, {pair[1]:g}", less(vcrf, crf), features_of(crf, vcrf),
            ]
        )  # fmt: skip
    rules, kappas = ["fobos", "cumulative", "subgradient"], ["m", "1", "1/m"]
    return [head, *sorted(rows, key=lambda row: (rules.index(row[0]), kappas.index(row[1]), float(row[2])))]


def less(side: Summary, other: Summary) -> str:
    """Difference of the mean errors."""
    return f"{(side.token - other.token).mean():+.2f}"


def features_of(*sides: Summary) -> str:
    return " / ".join(rounded(side.mean("n_features")) for side in sides)


def by_kappa(*folders: str) -> Rows:
    """The paper's steps with several kappas, one run: no penalty, or 1e-5 or 1e-4 on one axis.

    A step knows kappa times the strength alone: kappa = 10 and 100 are kappa = 1 at other strengths, and without a
    penalty (in the first folder) there is no kappa.
    """
    head = [
        "data", "kappa", "no penalty", "L1-CRF at 1e-5, 1e-4", "VCRF at 1e-5, 1e-4", "chosen: L1-CRF, VCRF",
        "VCRF less L1-CRF", "features with twins, L1-CRF / VCRF", "the paper: L1-CRF, VCRF; features",
    ]  # fmt: skip
    models = {settings(folder)["paper"]["kappa"]: points(folder) for folder in folders}
    (name,) = datasets(points(folders[0]))
    found = {kappa: runs_of(cells, name, "paper")[0] for kappa, cells in models.items()}
    free = next(p for p in next(iter(found.values())) if p.complexity_strength == p.base_strength == 0.0)
    result, features = paper.RESULTS[NAMES[name]], paper.FEATURES[NAMES[name]]
    theirs = f"{result.crf_token.mean:.2f}, {result.vcrf_token.mean:.2f}; {' / '.join(map(rounded, features[::-1]))}"
    rows = []
    for kappa, of, factor in (("1", "1", 1.0), ("10", "1", 10.0), ("100", "1", 100.0), ("m", "m", 1.0)):
        crfs, vcrfs = (
            [p for s in (1e-5, 1e-4) for p in found.get(of, []) if on_axis(p, axis, factor * s)] for axis in (1, 0)
        )
        if len(crfs) == len(vcrfs) == 2:
            crf, vcrf = Summary([choose([free, *crfs])]), Summary([choose([free, *crfs, *vcrfs])])
            rows.append(
                [
                    *(NAMES[name], kappa, plain(Summary([free]))),
                    *(", ".join(plain(Summary([p])) for p in axis) for axis in (crfs, vcrfs)),
                    *(f"{plain(crf)}, {plain(vcrf)}", less(vcrf, crf), features_of(crf, vcrf), theirs),
                ]
            )
    return [head, *rows]


def on_axis(p: PathPoint, axis: int, strength: float) -> bool:
    """Whether complexity (0) or base strength (1) is this and the other 0."""
    pair = p.complexity_strength, p.base_strength
    return pair[1 - axis] == 0.0 and math.isclose(pair[axis], strength)


def _run(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / folder / "run.json").read_text(encoding="utf-8"))
    return found


def eight(folder: str) -> Rows:
    """A part of each data set, the default protocol on the quick grid; chosen on validation."""
    head = [
        "data", "L1-CRF", "VCRF", "uniform", "ties", "VCRF less L1-CRF (95 %)", "better in", "p",
        "features with twins, VCRF / L1-CRF", "the paper's ratio",
    ]  # fmt: skip
    rows, cells = [], points(folder)
    for name in datasets(cells):
        ours = runs_of(cells, name, "paper")
        crf, vcrf = chosen(ours, is_crf=True), chosen(ours)
        controls = [error(chosen(runs_of(cells, name, method))) for method in ("uniform", "ties")]
        ratio = [counts[0] / counts[1] for counts in (paper.FEATURES[NAMES[name]],)]
        rows.append(
            [
                *(NAMES[name], error(crf), error(vcrf), *controls, *tested(difference(vcrf.token, crf.token))),
                f"{vcrf.mean('n_features') / crf.mean('n_features'):.2f}", f"{ratio[0]:.2g}",
            ]
        )  # fmt: skip
    return [head, *rows]


def noise(*folders: str) -> Rows:
    """Flipped training labels, by definition of which tokens."""
    head = ["data", "flipped", "L1-CRF", "VCRF", "VCRF less L1-CRF (95 %)", "better in", "p", "the paper: L1-CRF, VCRF"]
    rows = []
    for folder, tokens in zip(folders, ("words seen five times", "all tokens"), strict=False):
        cells = points(folder, noise=True)
        for name in datasets(cells):
            ours = runs_of(cells, name, "paper")
            crf, vcrf = chosen(ours, is_crf=True), chosen(ours)
            theirs = paper.NOISE[NAMES[name]]
            rows.append(
                [
                    *(NAMES[name], tokens, error(crf), error(vcrf), *tested(difference(vcrf.token, crf.token))),
                    f"{theirs.crf_token.mean:.2f}, {theirs.vcrf_token.mean:.2f}",
                ]
            )
    return [head, *rows]


def default(folder: str) -> Rows:
    """VCRF() with nothing set on the paper's folds of all data."""
    import protocol

    head = ["data", "runs", "`VCRF()`", "sentences", "weights", "the paper's VCRF", "the paper's L1-CRF"]
    found = protocol.table(
        protocol.read(RESULTS / folder / "errors.csv", any_version=True), sorted(NAMES, key=NAMES.get)
    )
    rows = [
        [NAMES[row[0]], row[1], row[2], row[3], row[4], row[6], row[8]] for row in found.rows
    ]  # fmt: skip
    return [head, *rows]


BLOCKS = {
    "claim-certified": Block(("claim-tamil-certified", "claim-twitter-certified"), at_strengths),
    "claim-weights": Block(("claim-tamil-certified", "claim-twitter-certified"), at_weights),
    "claim-chosen": Block(("claim-tamil-certified", "claim-twitter-certified"), on_validation),
    "claim-seeds": Block(("claim-tamil-seeds",), at_strengths),
    "claim-all": Block(("all-certified",), over_sets),
    "claim-early": Block(("claim-tamil-early",), at_strengths),
    "claim-steps": Block(("claim-tamil-steps",), by_steps),
    "claim-steps-twitter": Block(("claim-twitter-steps",), by_steps),
    "claim-kappa": Block(("claim-tamil-kappa",), by_setting),
    "claim-basque": Block(("claim-basque-steps",), by_kappa),
    "reproduce-claim": Block(("all-quick",), eight),
    "reproduce-noise": Block(("all-quick", "all-noise"), noise),
    "reproduce-default": Block(("default",), default),
}


def table(name: str) -> list[str]:
    """Lines of Markdown."""
    block = BLOCKS[name]
    head, *rows = block.rows(*block.folders)
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def facts(name: str) -> dict[str, Any]:
    """Where a table comes from: one command that fits into a line or two, or the folders that have theirs."""
    folders = BLOCKS[name].folders
    runs = [_run(folder) for folder in folders]
    latest = runs[-1]
    listed = ", ".join(f"results/{folder} ({run['commit']})" for folder, run in zip(folders, runs, strict=True))
    is_short = len(runs) == 1 and len(latest["command"]) < 400
    command = latest["command"] if is_short else f"vcrf reproduce, as run.json says of {listed}"
    return {"command": command, **{key: latest[key] for key in ("version", "commit", "machine")}}


def write() -> None:
    """Put the tables and their facts into results/figures.json and the pages."""
    figures = figure_blocks.read()
    for page in figure_blocks.pages():
        for section in figure_blocks.sections(page.read_text(encoding="utf-8")):
            for name in set(figure_blocks.shown(section)) & set(BLOCKS):
                figures[name] = {"table": table(name), "said": figure_blocks.quantities(section), **facts(name)}
    figure_blocks.save(figures)
    figure_blocks.write_pages()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="TABLE")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.write:
        write()
        return
    for name in options.names or BLOCKS:
        print(name, *table(name), "", sep="\n")


if __name__ == "__main__":
    main()
