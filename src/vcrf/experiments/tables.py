"""The tables: the paper's figures beside ours. They depend on the results alone, not on the time they took."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

from vcrf.experiments import paper
from vcrf.experiments.comparison import Difference, Summary, difference, spread
from vcrf.experiments.document import Section, Table
from vcrf.experiments.plan import Cell, Results
from vcrf.experiments.strengths import by_strength
from vcrf.experiments.tasks import PathPoint, Settings

_SIDES: tuple[tuple[str, Callable[[Results, Cell], Summary]], ...] = (("VCRF", Results.vcrf), ("L1-CRF", Results.crf))


def table_sections(results: Results) -> list[Section]:
    """All tables that were asked for."""
    plan = results.plan
    sections = [_data(results)]
    if "results" in plan.tables:
        sections += _errors(results, 0.0, "Errors", paper.RESULTS)
        sections.append(_methods(results))
    if "features" in plan.tables:
        sections.append(_features(results))
    if "noise" in plan.tables:
        sections += _errors(results, plan.noise, f"Errors with {plan.noise:.0%} label noise in training", paper.NOISE)
    sections += [by_strength(results), _chosen(results), _certificates(results)]
    if not results.is_complete:
        note = (
            "**Not complete:** some runs are missing. The tables have the runs that are there; the same command "
            "goes on where it stopped."
        )
        sections.insert(0, Section("State", [note]))
    return sections


def _data(results: Results) -> Section:
    rows = []
    for dataset in results.plan.datasets:
        theirs = paper.DATA.get(dataset.paper_name or "")
        ours = (dataset.n_sentences, dataset.n_tokens, dataset.n_unique, dataset.n_labels)
        rows.append([dataset.name, str(dataset.tag), *(f"{n:,}" for n in ours), dataset.checksum[:12]])
        if theirs is not None:
            rows.append([f"{dataset.paper_name} (paper)", "", *(f"{n:,}" for n in theirs), ""])
    headings = ["data", "label column", "sentences", "tokens", "unique tokens", "labels", "checksum"]
    parts = [
        f"{dataset.name}: {dataset.n_sentences:,} of its {dataset.n_whole:,} sentences, drawn at random."
        for dataset in results.plan.datasets
        if dataset.n_whole is not None
    ]
    return Section("Data", [Table(headings, rows, n_left=2), *parts])


def _errors(results: Results, noise: float, title: str, published: dict[str, paper.Row]) -> list[Section]:
    rows, differences = [], []
    names = {dataset.name: dataset.paper_name for dataset in results.plan.datasets}
    cells = results.cells(noise)
    for i, cell in enumerate(cells):
        vcrf, crf = results.vcrf(cell), results.crf(cell)
        token, sentence = difference(vcrf.token, crf.token), difference(vcrf.sentence, crf.sentence)
        rows.append(
            [
                cell.dataset, cell.method, str(len(vcrf.chosen)), _spread(vcrf.token, token.is_significant),
                _spread(vcrf.sentence, sentence.is_significant), _spread(crf.token), _spread(crf.sentence),
            ]
        )  # fmt: skip
        theirs = published.get(names[cell.dataset] or "")
        if theirs is not None and _is_last(cells, i):
            rows.append([cell.dataset, "the paper's table", "5", *_published(theirs)])
        differences.append([cell.dataset, cell.method, *_tested(token), *_tested(sentence), str(token.n_better)])
    if not rows:
        return []
    headings = ["data", "method", "runs", "VCRF token", "VCRF sentence", "L1-CRF token", "L1-CRF sentence"]
    tests = [
        "data", "method", "token, mean", "95 % interval", "p", "p, overlap", "sentence, mean", "95 % interval", "p",
        "p, overlap", "runs better",
    ]  # fmt: skip
    text = (
        "Per cent, mean ± standard deviation over runs. VCRF is the point of the whole grid with the smallest token "
        "error on validation, L1-CRF that of complexity strength 0. Bold: VCRF better at 5 % (one-sided paired "
        "t-test). `p, overlap` is the same test corrected for training sets that overlap (Nadeau and Bengio)."
    )
    return [
        Section(title, [text, Table(headings, rows, n_left=2)]),
        Section(f"{title}: VCRF less L1-CRF, points of per cent", [Table(tests, differences, n_left=2)]),
    ]


def _is_last(cells: list[Cell], i: int) -> bool:
    """Whether no more cells of this data set come: the place for the paper's row."""
    return i + 1 == len(cells) or cells[i + 1].dataset != cells[i].dataset


def _published(row: paper.Row) -> list[str]:
    vcrf = [f"{s.mean:.2f} ± {s.sd:.2f}" for s in (row.vcrf_token, row.vcrf_sentence)]
    crf = [f"{s.mean:.2f} ± {s.sd:.2f}" for s in (row.crf_token, row.crf_sentence)]
    return [f"**{cell}**" if row.is_significant else cell for cell in vcrf] + crf


def _spread(values: Any, is_bold: bool = False) -> str:
    mean, sd = spread(values)
    cell = f"{mean:.2f} ± {sd:.2f}"
    return f"**{cell}**" if is_bold else cell


def _tested(found: Difference) -> list[str]:
    p = "" if found.p_value is None else f"{found.p_value:.3f}"
    overlap = "" if found.p_overlap is None else f"{found.p_overlap:.3f}"
    interval = f"{found.low:+.2f} to {found.high:+.2f}"
    return [f"{found.mean:+.2f}", interval, f"**{p}**" if found.is_significant else p, overlap]


def _methods(results: Results) -> Section:
    """All methods side by side, each chosen from its whole grid, compared with the first method's L1-CRF and VCRF."""
    plan = results.plan
    if len(plan.methods) < 2:
        return Section("Methods")
    rows = []
    for dataset in plan.datasets:
        first = Cell(dataset.name, plan.methods[0].name, 0.0)
        for method in plan.methods:
            cell = Cell(dataset.name, method.name, 0.0)
            if not results.points.get(cell):
                continue
            ours, tested, against = results.vcrf(cell), ["", "", "", ""], ["", ""]
            if results.points.get(first, {}).keys() == results.points[cell].keys():
                tested = _tested(difference(ours.token, results.crf(first).token))
                less = difference(results.vcrf(first).token, ours.token)
                against = [f"{less.mean:+.2f}", "" if less.p_value is None else f"{less.p_value:.3f}"]
            rows.append(
                [
                    *(dataset.name, method.name, _spread(ours.token), _spread(ours.sentence)),
                    *(f"{ours.mean('n_active'):,.0f}", *tested, *against),
                ]
            )
    headings = [
        "data", "method", "token", "sentence", "weights", "less L1-CRF", "95 % interval", "p", "p, overlap",
        "first less it", "p",
    ]  # fmt: skip
    calls = "\n".join(f"- `{method.name}`: `{method.describe()}`" for method in plan.methods)
    text = (
        "Each method is chosen from its whole grid on validation. The difference is to the token error of the L1-CRF "
        f"of `{plan.methods[0].name}` on the same runs; the last two columns are VCRF of `{plan.methods[0].name}` less "
        "the row, with the test of the claim that it is better. The control `uniform` has the mean strength of each "
        "point for all families alike, `ties` the same with twins decided by complexity."
    )
    return Section("Methods", [text, Table(headings, rows, n_left=2), calls])


def _features(results: Results) -> Section:
    rows = []
    names = {dataset.name: dataset.paper_name for dataset in results.plan.datasets}
    cells = results.cells(0.0)
    for i, cell in enumerate(cells):
        vcrf, crf = results.vcrf(cell), results.crf(cell)
        counts = [
            _ratio(vcrf.mean(name), crf.mean(name))
            for name in ("n_active", "n_features", "n_columns_used", "n_attributes")
        ]
        texts = [text for found in counts for text in found]
        rows.append([cell.dataset, cell.method, *texts, f"{vcrf.mean('n_candidates'):,.0f}"])
        theirs = paper.FEATURES.get(names[cell.dataset] or "")
        if theirs is not None and _is_last(cells, i):
            rows.append([cell.dataset, "the paper's table", "", "", "", *_ratio(*theirs), *[""] * 7])
    if not rows:
        return Section("Features")
    headings = [
        "data", "method", "VCRF", "L1-CRF", "ratio", "VCRF, with twins", "L1-CRF, with twins", "ratio",
        "VCRF attributes", "L1-CRF attributes", "ratio", "VCRF attributes, with twins",
        "L1-CRF attributes, with twins", "ratio", "candidates",
    ]  # fmt: skip
    text = (
        "Average number of features (weights) in the chosen models, and of attributes that have some. Attributes that "
        "occur at exactly the same training positions (twins) carry the weight of one feature: `with twins` counts "
        "every attribute that has a share of it, which is how the paper counts; the others count it once (with the "
        "solvers sgd and gd once for each pair of k1 and k3). `candidates` are attributes x tag patterns before any "
        "reduction."
    )
    return Section("Features", [text, Table(headings, rows, n_left=2)])


def _ratio(ours: float, theirs: float) -> list[str]:
    return [f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.3g}" if theirs else ""]


def _chosen(results: Results) -> Section:
    rows = []
    for noise in results.plan.noises:
        for cell in results.cells(noise):
            for name, summary in _SIDES:
                chosen = summary(results, cell).chosen
                for run, point in zip(results.points[cell], chosen, strict=True):
                    rows.append([cell.dataset, cell.method, f"{noise:g}", name, str(run), *_facts(point)])
    if not rows:
        return Section("Chosen models")
    headings = [
        "data", "method", "noise", "model", "run", "complexity strength", "base strength", "validation token",
        "test token", "features", "passes", "relative gap", "ended",
    ]  # fmt: skip
    return Section("Chosen models", [Table(headings, rows, n_left=4)])


def _facts(point: PathPoint) -> list[str]:
    return [
        f"{point.complexity_strength:g}", f"{point.base_strength:g}",
        f"{100 * point.validation_wrong / point.validation_tokens:.2f}",
        f"{100 * point.test_wrong / point.test_tokens:.2f}", f"{point.n_active:,}", str(point.n_passes),
        _gap(point), point.status.lower().replace("_", " "),
    ]  # fmt: skip


def _gap(point: PathPoint) -> str:
    if point.gap is None or point.objective <= 0.0:
        return "none"
    return f"{point.gap / point.objective:.1e}"


def _certificates(results: Results) -> Section:
    """How the points of the grid ended: only some are certified optima."""
    rows = []
    for noise in results.plan.noises:
        for cell in results.cells(noise):
            points = [point for run in results.points[cell].values() for point in run]
            ended = [point.status for point in points]
            limited, uncertified = ended.count("MAX_PASSES"), ended.count("UNCERTIFIED")
            others = len(ended) - ended.count("CONVERGED") - limited - uncertified
            counts = (len(ended), ended.count("CONVERGED"), limited, uncertified, others)
            rows.append([cell.dataset, cell.method, f"{noise:g}", *(f"{n:,}" for n in counts)])
    if not rows:
        return Section("Certificates")
    settings = results.plan.settings
    limit = "no limit on passes" if settings.max_passes is None else f"at most {settings.max_passes} passes a point"
    text = (
        f"A point ends when its certified relative gap is below {settings.tol:g}; {limit}, from the point before. At "
        f"(0, 0) there is no certificate and in general no minimum: {_at_zero(settings)}."
    )
    headings = ["data", "method", "noise", "points", "certified", "limit on passes", "uncertified", "other"]
    return Section("Certificates", [text, Table(headings, rows, n_left=2)])


def _at_zero(settings: Settings) -> str:
    n = settings.max_passes_at_zero
    return "it ends like the others" if n is None else f"at most {n} passes there"


def points_csv(results: Results) -> str:
    """Every point of every complete run."""
    names = [name for name in PathPoint._fields if name not in ("seconds", "families")]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["dataset", "method", "noise", "run", *names])
    for cell, runs in results.points.items():
        for run, points in runs.items():
            writer.writerows([*cell, run, *(getattr(point, name) for name in names)] for point in points)
    return out.getvalue()


def figures(results: Results) -> list[dict[str, Any]]:
    """The tables as numbers: one object a data set, method and share of noise."""
    return [_figures(results, cell) for noise in results.plan.noises for cell in results.cells(noise)]


def _figures(results: Results, cell: Cell) -> dict[str, Any]:
    found: dict[str, Any] = {**cell._asdict(), "runs": list(results.points[cell])}
    for name, summary in (("vcrf", results.vcrf(cell)), ("crf", results.crf(cell))):
        (token, token_sd), (sentence, sentence_sd) = spread(summary.token), spread(summary.sentence)
        found[name] = {
            "token_error": token, "token_error_sd": token_sd, "token_errors": summary.token.tolist(),
            "sentence_error": sentence, "sentence_error_sd": sentence_sd, "sentence_errors": summary.sentence.tolist(),
            "n_active": summary.mean("n_active"), "n_features": summary.mean("n_features"),
            "n_attributes": summary.mean("n_attributes"), "n_columns_used": summary.mean("n_columns_used"),
            "n_candidates": summary.mean("n_candidates"),
            "strengths": [[point.complexity_strength, point.base_strength] for point in summary.chosen],
        }  # fmt: skip
    for name in ("token", "sentence"):
        tested = difference(getattr(results.vcrf(cell), name), getattr(results.crf(cell), name))
        found[f"{name}_difference"] = {
            "mean": tested.mean, "low": tested.low, "high": tested.high, "p_value": tested.p_value,
            "p_overlap": tested.p_overlap, "is_significant": tested.is_significant,
        }  # fmt: skip
    return found
