"""VCRF() with nothing set on the paper's folds: run i trains on three of five folds and is tested on fold i + 1.

    python benchmarks/protocol.py [tamil twitter basque ...] [--runs 5] [--seed 0] -o results/default

The folds are those of `vcrf reproduce` (the same seed gives the same ones), so that the errors can be laid beside its
tables. Nothing is chosen: the validation fold is not read. The treebanks are read from `../shared/data`, all of them
if none is named. A run is a row of `errors.csv` as soon as it is done, and is not done again by the same version; run 0
of all data comes before run 1 of any. `tables.md` has the means beside the paper's table.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import peers

from vcrf import VCRF
from vcrf.experiments import paper
from vcrf.experiments.comparison import spread
from vcrf.experiments.datasets import KNOWN, Dataset, find_data, read_dataset, unpack
from vcrf.experiments.document import Section, Table, to_markdown
from vcrf.experiments.protocol import N_FOLDS, parts_of_run
from vcrf.experiments.tasks import code_version
from vcrf.files import replacing
from vcrf.metrics import sentence_error, token_error


class Row(NamedTuple):
    """A trained tagger and its mistakes."""

    version: str
    dataset: str
    seed: int
    run: int
    test_wrong: int
    test_tokens: int
    test_sentences_wrong: int
    test_sentences: int
    n_active: int
    gap: float
    processor_seconds: float


def one_run(data: Dataset, seed: int, run: int) -> Row:
    """Train with one thread and count the mistakes on the test fold."""
    tokens, labels = unpack(data.blob)
    parts = parts_of_run(len(tokens), seed, run)
    began = time.process_time()
    tagger = VCRF(n_jobs=1).fit([tokens[i] for i in parts.train], [labels[i] for i in parts.train])
    true, found = [labels[i] for i in parts.test], tagger.predict([tokens[i] for i in parts.test])
    seconds = time.process_time() - began
    token, sentence = token_error(true, found), sentence_error(true, found)
    return Row(
        code_version(), data.name, seed, run, token.n_wrong, token.n, sentence.n_wrong, sentence.n,
        tagger.n_active_, tagger.gap_ / tagger.objective_, seconds,
    )  # fmt: skip


def read(path: Path, any_version: bool = False) -> list[Row]:
    """Rows of this version, or of all."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = [
            Row(*(kind(text) for kind, text in zip((str, str, *(int,) * 7, float, float), line, strict=True)))
            for line in list(csv.reader(file))[1:]
        ]
    return [row for row in rows if any_version or row.version == code_version()]


def write(path: Path, rows: Iterable[Row]) -> None:
    with replacing(path) as file:
        lines = [",".join(Row._fields), *(",".join(map(str, row)) for row in rows)]
        file.write(("\n".join(lines) + "\n").encode())


def table(rows: list[Row], names: Iterable[str]) -> Table:
    """Means and standard deviations over the runs of a data set, beside the paper's."""
    shown = []
    for name in names:
        own = [row for row in rows if row.dataset == name]
        theirs = paper.RESULTS.get(KNOWN[name].paper_name) if name in KNOWN else None
        errors = [
            [100.0 * row.test_wrong / row.test_tokens for row in own],
            [100.0 * row.test_sentences_wrong / row.test_sentences for row in own],
        ]
        published = [theirs.vcrf_token, theirs.vcrf_sentence, theirs.crf_token, theirs.crf_sentence] if theirs else []
        if own:
            texts = [_shown(*found, len(own)) for found in map(spread, errors)]
            texts += [_shown(mean, sd, N_FOLDS) for mean, sd in published]
            weights = f"{spread([row.n_active for row in own])[0]:,.0f}"
            seconds = f"{sum(row.processor_seconds for row in own):,.0f}"
            shown.append([name, str(len(own)), *texts[:2], weights, seconds, *(texts[2:] or [""] * 4)])
    headings = [
        "data", "runs", "token", "sentence", "weights", "processor seconds", "the paper's VCRF token", "sentence",
        "the paper's L1-CRF token", "sentence",
    ]  # fmt: skip
    return Table(headings, shown, n_left=1)


def _shown(mean: float, sd: float, n_runs: int) -> str:
    """Mean and standard deviation of a sample; one run has none."""
    return f"{mean:.2f} ± {sd:.2f}" if n_runs > 1 else f"{mean:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[*KNOWN])
    parser.add_argument("--runs", type=int, default=N_FOLDS, help="the first so many of the five runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    kept = options.output / "errors.csv"
    data = [read_dataset(file) for file in find_data([peers.DATA_FOLDER], options.names, None)]
    rows = [row for row in read(kept) if row.seed == options.seed]
    for run in range(options.runs):
        for one in sorted(data, key=lambda found: found.n_tokens):
            if (one.name, run) not in {(row.dataset, row.run) for row in rows}:
                rows.append(one_run(one, options.seed, run))
                write(kept, rows)
                print(*rows[-1], flush=True)
    text = "Per cent, mean ± standard deviation over runs. `VCRF()` with nothing set, on the paper's folds."
    section = Section("Errors with the default", [text, table(rows, sorted({row.dataset for row in rows}))])
    with replacing(options.output / "tables.md") as file:
        file.write(to_markdown("Tables", [section]).encode())
    print((options.output / "tables.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
