"""Error against training seconds, beside other taggers: who is on the front, and a picture of it.

    python benchmarks/front.py [tamil basque ...] [--keep build/front.json]
    python benchmarks/front.py --draw docs/front.png [--keep build/front.json]

Each tool trains several times, with more and more effort, on the train split of a treebank and labels its test split:

    vcrf        VCRF() with tol 0.3, 0.1 and its own; and with tags=3
    ap, l2sgd   CRFsuite's averaged perceptron and stochastic gradient, 1 to 100 iterations, else as they come
    lbfgs       CRFsuite's default, c1 = c2 = 0.1, 30 and 100 iterations
    vowpal      Vowpal Wabbit's search, 1 to 10 passes, else as it comes
    spacy       the tagger of a blank spaCy pipeline (a small network, on the processor), after each of 30 epochs
                (10 where there are 5,000 sentences or more)

CRFsuite and Vowpal Wabbit read the same 19 attributes a token (`peers.usual_attributes`); making these in Python is not
counted, nor is writing Vowpal Wabbit's text file, nor compiling ours (a small fit comes first). Everything else from
words to a model is. Seconds are processor time of one thread, each tool in a process of its own. What has been measured
is kept in a file and not run again. The treebanks are read from `../shared/data`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import peers
from accuracy import FIRST, LABELS, MORE

ITERATIONS = (1, 3, 10, 30, 100)
PASSES = (1, 2, 5, 10)
EPOCHS, FEW_EPOCHS = 30, 10
MANY_SENTENCES = 5000
BATCH = 16

# One point of a tool: its setting, processor seconds of training, token error.
Point = tuple[str, float, float]
Part = tuple[list[list[str]], list[list[str]]]


def run_vcrf(train: Part, test: Part) -> Iterator[Point]:
    from vcrf import VCRF

    for setting in ({"tol": 0.3}, {"tol": 0.1}, {}, {"tags": 3}):
        VCRF(n_jobs=1, **setting).fit(train[0][:30], train[1][:30])
        began = time.process_time()
        tagger = VCRF(n_jobs=1, **setting).fit(*train)
        seconds = time.process_time() - began
        name = ", ".join(f"{key}={value}" for key, value in setting.items()) or "default"
        yield name, seconds, peers.token_error(test[1], tagger.predict(test[0]))


def run_crfsuite(algorithm: str, parameters: dict[str, float], efforts: tuple[int, ...]) -> Callable[..., Any]:
    def run(train: Part, test: Part) -> Iterator[Point]:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(algorithm, parameters, verbose=False)
        for tokens, labels in zip(*train, strict=True):
            trainer.append(pycrfsuite.ItemSequence(peers.usual_attributes(tokens)), labels)
        attributes = [pycrfsuite.ItemSequence(peers.usual_attributes(tokens)) for tokens in test[0]]
        for effort in efforts:
            trainer.set("max_iterations", effort)
            with tempfile.TemporaryDirectory() as folder:
                began = time.process_time()
                trainer.train(str(Path(folder) / "model"))
                seconds = time.process_time() - began
                tagger = pycrfsuite.Tagger()
                tagger.open(str(Path(folder) / "model"))
                found = [tagger.tag(sentence) for sentence in attributes]
                tagger.close()
            yield f"{effort} iterations", seconds, peers.token_error(test[1], found)

    return run


def run_vowpal(train: Part, test: Part) -> Iterator[Point]:
    from vowpal import train_vowpal

    for passes in PASSES:
        run = train_vowpal(*train, test[0], passes)
        yield f"{passes} passes", run.cpu_seconds, peers.token_error(test[1], run.predictions)


def run_spacy(train: Part, test: Part) -> Iterator[Point]:
    from spacy.tokens import Doc
    from spacy.training import Example
    from spacy.util import fix_random_seed, minibatch

    import spacy

    fix_random_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe("tagger")
    # spaCy gives a label that begins with "!" a meaning of its own, and Twitter has one: labels begin with "=" here.
    examples = [
        Example.from_dict(Doc(nlp.vocab, words=words), {"words": words, "tags": [f"={z}" for z in labels]})
        for words, labels in zip(*train, strict=True)
    ]
    began = time.process_time()
    optimizer = nlp.initialize(lambda: examples)
    seconds = time.process_time() - began
    for epoch in range(EPOCHS if len(examples) < MANY_SENTENCES else FEW_EPOCHS):
        began = time.process_time()
        for batch in minibatch(examples, BATCH):
            nlp.update(batch, sgd=optimizer)
        seconds += time.process_time() - began
        with nlp.use_params(optimizer.averages):
            docs = nlp.pipe(Doc(nlp.vocab, words=words) for words in test[0])
            found = [[token.tag_[1:] for token in doc] for doc in docs]
        yield f"{epoch + 1} epochs", seconds, peers.token_error(test[1], found)


TOOLS: dict[str, Callable[[Part, Part], Iterator[Point]]] = {
    "vcrf": run_vcrf,
    "ap": run_crfsuite("ap", {}, ITERATIONS),
    "l2sgd": run_crfsuite("l2sgd", {}, ITERATIONS),
    "lbfgs": run_crfsuite("lbfgs", {"c1": 0.1, "c2": 0.1}, ITERATIONS[-2:]),
    "vowpal": run_vowpal,
    "spacy": run_spacy,
}


def work(tool: str, name: str) -> None:
    """In a process of its own: one line of JSON a point."""
    label = LABELS.get(name, "upos")
    train, test = (peers.read_treebank(name, part, label) for part in ("train", "test"))
    for point in TOOLS[tool](train, test):
        print(json.dumps(point), flush=True)


def measure(names: list[str], tools: list[str], keep: Path) -> None:
    """Run what is not in the file yet; a tool's points are kept when its process has ended."""
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("NUMBA", "OMP", "OPENBLAS", "BLIS")}
    for name in names:
        for tool in tools:
            known = read(keep)
            if tool in known.get(name, {}):
                continue
            command = [sys.executable, str(Path(__file__).resolve()), "--worker", tool, name]
            done = subprocess.run(command, check=True, env=os.environ | one_thread, stdout=subprocess.PIPE, text=True)
            points = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
            known.setdefault(name, {})[tool] = points
            keep.parent.mkdir(parents=True, exist_ok=True)
            keep.write_text(json.dumps(known, indent=1), encoding="utf-8")
            for setting, seconds, error in points:
                print(f"{name:17s} {tool:7s} {setting:15s} {seconds:8.2f} s  {error:.2%}", flush=True)


def read(keep: Path) -> dict[str, dict[str, list[Point]]]:
    """Treebank -> tool -> points."""
    return json.loads(keep.read_text(encoding="utf-8")) if keep.exists() else {}


def better(ours: Point, theirs: list[Point]) -> list[Point]:
    """Points that are quicker and make no more errors, or are as quick and make fewer."""
    return [p for p in theirs if p[1] <= ours[1] and p[2] <= ours[2] and p[1:] != ours[1:]]


def report(known: dict[str, dict[str, list[Point]]]) -> None:
    """For each treebank the default, the best that each other tool came to, and who beats the default in both."""
    tools = [tool for tool in TOOLS if tool != "vcrf"]
    print("| | VCRF() | " + " | ".join(tools) + " | quicker with fewer errors |")
    print("|" + "---|" * (len(tools) + 3))
    for name, found in known.items():
        default = next(point for point in found["vcrf"] if point[0] == "default")
        cells, beaten = [f"{default[2]:.2%} in {default[1]:.1f} s"], []
        for tool in tools:
            points = found.get(tool, [])
            best = min(points, key=lambda point: point[2], default=None)
            cells.append(f"{best[2]:.2%} in {best[1]:.1f} s" if best else "")
            beaten += [f"{tool}, {point[0]}" for point in better(default, points)]
        print(f"| {name} | {' | '.join(cells)} | {'; '.join(beaten) or 'none'} |")


def draw(known: dict[str, dict[str, list[Point]]], path: Path) -> None:
    """A panel a treebank: seconds to the right, errors upwards; a line a tool, in the order of effort."""
    from vcrf.plots import new_figure, save_figure

    columns = min(len(known), 4)
    rows = -(-len(known) // columns)
    figure = new_figure(3.6 * columns, 3.2 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (name, found) in zip(panels, known.items(), strict=False):
        for tool, points in found.items():
            style = {"linewidth": 2.0, "color": "black", "zorder": 3} if tool == "vcrf" else {"linewidth": 1.0}
            seconds, errors = [point[1] for point in points], [100 * point[2] for point in points]
            axes.plot(seconds, errors, marker="o", markersize=3, label=tool, **style)
        best = min(100 * point[2] for points in found.values() for point in points)
        axes.set_xscale("log")
        axes.set_ylim(0.9 * best, 3.0 * best)
        axes.set_title(name)
    for axes in list(figure.axes)[len(known) :]:
        axes.set_axis_off()
    for axes in list(figure.axes)[: len(known)]:
        axes.set_xlabel("processor seconds of training")
        axes.set_ylabel("token error, %")
    figure.axes[0].legend(fontsize="small")
    save_figure(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="TREEBANK", help=f"of {', '.join(FIRST + MORE)}")
    parser.add_argument("--tools", nargs="+", choices=list(TOOLS), default=list(TOOLS))
    parser.add_argument("--keep", type=Path, default=Path("build/front.json"))
    parser.add_argument("--draw", type=Path, metavar="PICTURE", help="measure nothing, draw what is kept")
    options = parser.parse_args()
    if options.draw is None:
        measure(options.names or FIRST + MORE, options.tools, options.keep)
    known = read(options.keep)
    if not known:
        parser.error(f"nothing is kept in {options.keep}")
    report(known)
    if options.draw:
        draw(known, options.draw)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"\nLargest process: {peak:.0f} MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(*sys.argv[2:])
    else:
        main()
