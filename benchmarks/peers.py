"""CRFsuite, run as the reference: the same features, the exact objective, the time and the memory it took.

Other benchmarks import `usual_attributes`, `read_treebank`, `train_crfsuite` and `objective` from here.
By hand, on one of the treebanks in ``../shared/data`` (beside the project root)::

    python benchmarks/peers.py tamil --c1 0.5
    python benchmarks/peers.py basque --c1 0.5 --all-possible-states
    python benchmarks/peers.py english --c1 0.5 --max-iterations 30

The objective is CRFsuite's own: a sum over sentences and not a mean, without a factor 1/2, without start or
end weights.

    sum_i -log p(y_i | x_i; w)  +  c1 * ||w||_1  +  c2 * ||w||_2^2

Training runs in a process of its own that holds nothing but CRFsuite's copy of the data, so that its peak
memory is CRFsuite's. Wall time is given beside processor time: if they differ, the machine was busy and the
run is to be redone.
"""

from __future__ import annotations

import argparse
import gzip
import math
import pickle
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import pycrfsuite

DATA_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
LABEL_COLUMNS = {"upos": 3, "xpos": 4}

Attributes = dict[str, str | bool]
Weights = dict[tuple[str, str], float]


# ------------------------------------------------------------------------------------ data


def read_treebank(name: str, split: str, label: str = "upos") -> tuple[list[list[str]], list[list[str]]]:
    """Read one split of a treebank of the data folder: the tokens and the labels of its sentences."""
    path = DATA_FOLDER / f"{name}.conllu.gz"
    if not path.is_file():
        known = ", ".join(sorted(p.name.removesuffix(".conllu.gz") for p in DATA_FOLDER.glob("*.conllu.gz")))
        raise FileNotFoundError(f"No treebank {name!r} in {DATA_FOLDER}, which has: {known or 'none'}.")
    tokens: list[list[str]] = []
    labels: list[list[str]] = []
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for is_sentence, block in groupby(lines, key=lambda line: line != "\n"):
            comment, *words = block
            if is_sentence and comment.rstrip("\n") == f"# split = {split}":
                rows = [word.rstrip("\n").split("\t") for word in words]  # TAB only: some forms hold a space
                tokens.append([row[1] for row in rows])
                labels.append([row[LABEL_COLUMNS[label]] for row in rows])
    if not tokens:
        raise ValueError(f"{path.name} has no sentence of split {split!r}.")
    return tokens, labels


def dataset(text: str) -> str:
    """A treebank and its labels, as in "english:xpos"; for arguments of the command line."""
    name, _, label = text.partition(":")
    if label not in LABEL_COLUMNS or not (DATA_FOLDER / f"{name}.conllu.gz").is_file():
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a treebank of the data folder and {' or '.join(LABEL_COLUMNS)}, as in english:upos"
        )
    return text


def at_least(least: int) -> Callable[[str], int]:
    """Whole numbers from `least` on; for arguments of the command line."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number, at least {least}")
        return int(text)

    return parse


def positive(text: str) -> float:
    """Numbers above zero; for arguments of the command line."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number above 0")
    return value


def _shape(word: str) -> str:
    """Character classes with runs collapsed: ``McDonald-2`` gives ``XxXx-d``."""
    classes = ("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else "-" for c in word)
    return "".join(kind for kind, _ in groupby(classes))


def usual_attributes(tokens: Sequence[str]) -> list[Attributes]:
    """Give each token of a sentence the usual 19 attributes for tagging, as sklearn-crfsuite takes them.

    A sentence's borders are the neighbours ``<s>`` and ``</s>``. There is no title-case flag: the shape says
    it. A false flag is an attribute of value 0, as in sklearn-crfsuite.

    Examples
    --------
    >>> len(usual_attributes(["Hello", "world"])[0])
    19
    """
    padded = ["<s>", "<s>", *tokens, "</s>", "</s>"]
    windows = [padded[i : i + len(tokens)] for i in range(5)]
    return [
        {
            "bias": True,
            "word": word,
            "lower": word.lower(),
            "shape": _shape(word),
            "prefix1": word[:1],
            "prefix2": word[:2],
            "prefix3": word[:3],
            "suffix1": word[-1:],
            "suffix2": word[-2:],
            "suffix3": word[-3:],
            "suffix4": word[-4:],
            "is_digit": word.isdigit(),
            "has_hyphen": "-" in word,
            "previous": previous,
            "next": following,
            "previous_suffix": previous[-3:],
            "next_suffix": following[-3:],
            "two_back": two_back,
            "two_ahead": two_ahead,
        }
        for two_back, previous, word, following, two_ahead in zip(*windows, strict=True)
    ]


# ------------------------------------------------------------------------------------ the run


@dataclass(frozen=True)
class Iteration:
    """CRFsuite's progress: `seconds` are since the start of training, its log rounds `loss` to 6 decimals."""

    number: int
    seconds: float
    loss: float
    n_active: int
    n_evaluations: int


@dataclass
class CrfsuiteRun:
    """What one training of CRFsuite took and gave.

    Attributes
    ----------
    seconds : float
        Wall time of training: feature generation, iterations, writing the model. `cpu_seconds` is its
        processor time.
    append_seconds : float
        Wall time of handing the dicts to CRFsuite, before training.
    generation_seconds : float
        The part of `seconds` before the first evaluation of the objective.
    iterations : list of Iteration
        `n_evaluations` counts the passes of the line search; one more evaluation precedes the first.
    start_bytes, data_bytes, peak_bytes : int
        Resident memory of the process before the data, with the data, and its peak until the end of training.
    model_bytes : int
        Size of the model file.
    state_features, transitions : dict
        Exact weights, read from the model file; `Tagger.info` has the same rounded to 6 decimals.
    objective : float
        Recomputed from the exact weights; NaN until `train_crfsuite` has filled it in.
    predictions : list of list of str
        The labels of `X_test`; `tag_seconds` is the wall time from dicts to labels.
    """

    parameters: dict[str, float | int | bool]
    seconds: float = math.nan
    cpu_seconds: float = math.nan
    append_seconds: float = 0.0
    generation_seconds: float = math.nan
    tag_seconds: float = 0.0
    iterations: list[Iteration] = field(default_factory=list)
    stopped_because: str = ""
    n_features: int = 0
    start_bytes: int = 0
    data_bytes: int = 0
    peak_bytes: int = 0
    model_bytes: int = 0
    labels: list[str] = field(default_factory=list)
    state_features: Weights = field(default_factory=dict)
    transitions: Weights = field(default_factory=dict)
    predictions: list[list[str]] = field(default_factory=list)
    objective: float = math.nan

    @property
    def n_iterations(self) -> int:
        """Iterations done."""
        return len(self.iterations)

    @property
    def n_evaluations(self) -> int:
        """Passes over the data: the first evaluation and every trial of the line searches."""
        return 1 + sum(step.n_evaluations for step in self.iterations)

    @property
    def n_active(self) -> int:
        """Weights that are not zero."""
        return sum(weight != 0.0 for weight in [*self.state_features.values(), *self.transitions.values()])

    @property
    def seconds_per_iteration(self) -> float:
        """Mean over all iterations, the evaluation before the first one included, feature generation not."""
        if not self.iterations:
            return math.nan
        return (self.iterations[-1].seconds - self.generation_seconds) / self.n_iterations


def train_crfsuite(
    X: Sequence[Sequence[Attributes]],
    y: Sequence[Sequence[str]],
    c1: float,
    c2: float,
    all_possible_states: bool = False,
    all_possible_transitions: bool = False,
    max_iterations: int | None = None,
    epsilon: float = 1e-5,
    delta: float = 1e-5,
    X_test: Sequence[Sequence[Attributes]] = (),
) -> CrfsuiteRun:
    """Train CRFsuite with L-BFGS (OWL-QN if c1 > 0) in a process of its own, then label `X_test` with it.

    Parameters
    ----------
    epsilon, delta : float
        CRFsuite stops when the gradient's norm falls below epsilon times the weights', or the relative
        improvement over ten iterations below delta. Its defaults are the ones here.
    """
    parameters = {
        "c1": c1,
        "c2": c2,
        "feature.possible_states": all_possible_states,
        "feature.possible_transitions": all_possible_transitions,
        "epsilon": epsilon,
        "delta": delta,
    }
    if max_iterations is not None:
        parameters["max_iterations"] = max_iterations
    command = [sys.executable, str(Path(__file__).resolve()), "--worker"]
    with tempfile.TemporaryFile() as job:
        _write_job(job, parameters, zip(X, y, strict=True), X_test)
        job.seek(0)
        worker = subprocess.run(command, stdin=job, stdout=subprocess.PIPE, check=False)
    if worker.returncode:
        raise RuntimeError(f"CRFsuite's process ended with code {worker.returncode}: see its message above.")
    facts = pickle.loads(worker.stdout)
    run = CrfsuiteRun(**facts | {"iterations": [Iteration(*step) for step in facts["iterations"]]})
    run.objective = objective(X, y, run.labels, run.state_features, run.transitions, c1, c2)
    return run


def objective(
    X: Sequence[Sequence[Attributes]],
    y: Sequence[Sequence[str]],
    labels: Sequence[str],
    state_features: Weights,
    transitions: Weights,
    c1: float,
    c2: float,
) -> float:
    """CRFsuite's objective at given weights, in double precision: the formula at the top of this file."""
    import numpy as np  # here, so that CRFsuite's process does not carry it

    label_ids = {label: k for k, label in enumerate(labels)}
    rows: dict[str, int] = {}
    for attribute, _ in state_features:
        rows.setdefault(attribute, len(rows))
    state = np.zeros((len(rows), len(labels)))
    for (attribute, label), weight in state_features.items():
        state[rows[attribute], label_ids[label]] = weight
    transition = np.zeros((len(labels), len(labels)))  # [from, to]
    for (source, target), weight in transitions.items():
        transition[label_ids[source], label_ids[target]] = weight

    losses = []
    for sentence, reference in zip(X, y, strict=True):
        scores = np.zeros((len(reference), len(labels)))
        for t, item in enumerate(pycrfsuite.ItemSequence(sentence).items()):
            for attribute, value in item.items():
                if (row := rows.get(attribute)) is not None:
                    scores[t] += value * state[row]
        gold = np.array([label_ids[label] for label in reference])
        path = scores[np.arange(len(gold)), gold].sum() + transition[gold[:-1], gold[1:]].sum()
        fwd = scores[0]
        for emitted in scores[1:]:
            top = fwd.max()
            fwd = emitted + top + np.log(np.exp(fwd - top) @ np.exp(transition))
        losses.append(fwd.max() + math.log(np.exp(fwd - fwd.max()).sum()) - path)
    weights = [*state_features.values(), *transitions.values()]
    return math.fsum([*losses, *(c1 * abs(w) + c2 * w * w for w in weights)])


# ------------------------------------------------------------------------------------ CRFsuite's process


def _write_job(
    job: IO[bytes],
    parameters: dict[str, float | int | bool],
    sentences: Iterator[tuple[Sequence[Attributes], Sequence[str]]],
    X_test: Sequence[Sequence[Attributes]],
) -> None:
    """Write a sentence at a time, so that the reader never holds all the dicts."""
    pickle.dump(parameters, job)
    for pair in sentences:
        pickle.dump(pair, job)
    pickle.dump(None, job)
    for sentence in X_test:
        pickle.dump(sentence, job)
    pickle.dump(None, job)


def _read_until_none(job: IO[bytes]) -> Iterator[Any]:
    while (item := pickle.load(job)) is not None:
        yield item


class _TimedTrainer(pycrfsuite.BaseTrainer):
    """Stamps CRFsuite's messages with the wall clock.

    python-crfsuite's own parser drops losses that are negative or not in plain decimals, and has no clock but
    CRFsuite's, which counts processor time in milliseconds.
    """

    def start(self, run: CrfsuiteRun) -> None:
        self.run = run
        self.started = time.perf_counter()
        self.seen: dict[str, str] = {}
        self.stamp = 0.0

    def message(self, message: str) -> None:
        name, _, value = message.strip().partition(":")
        if name.startswith("***** Iteration #"):
            self.stamp = time.perf_counter() - self.started
            self.seen = {"number": name.split("#")[1].split()[0]}
        elif name.startswith("L-BFGS ") and name != "L-BFGS optimization":
            self.run.stopped_because = name
        elif name == "L-BFGS optimization":
            self.run.generation_seconds = time.perf_counter() - self.started
        elif name == "Number of features":
            self.run.n_features = int(value)
        elif name == "Seconds required for this iteration":  # the last line of an iteration
            self.run.iterations.append(self._iteration())
        elif value:
            self.seen[name] = value

    def _iteration(self) -> Iteration:
        return Iteration(
            number=int(self.seen["number"]),
            seconds=self.stamp,
            loss=float(self.seen["Loss"]),
            n_active=int(self.seen["Active features"]),
            n_evaluations=int(self.seen["Line search trials"]),
        )


def peak_bytes() -> int:
    """Most bytes resident so far in this process."""
    return _memory("VmHWM")


def _memory(field_name: str) -> int:
    """Bytes now resident (``VmRSS``) or at most so far (``VmHWM``) in this process.

    The kernel's ``ru_maxrss`` is not the process's own: a process started by a large parent inherits the
    parent's. It serves only where there is no ``/proc``.
    """
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    line = next(line for line in status.read_text().splitlines() if line.startswith(field_name))
    return int(line.split()[1]) * 1024


def _read_weights(model: Path) -> tuple[list[str], Weights, Weights]:
    """Labels, state weights and transition weights of a model file, in full precision.

    `Tagger.info` prints 6 decimals: the names come from it, the numbers from the file. The eighth of the
    32-bit words at its head is the offset of the features: a mark, a size, a count (the count at the file's
    head is always 0), then records of kind (0 state, 1 transition), source, target and a double. The numbers
    are checked against the printed ones.
    """
    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    info = tagger.info()
    tagger.close()
    labels = {int(number): label for label, number in info.labels.items()}
    attributes = {int(number): attribute for attribute, number in info.attributes.items()}
    content = model.read_bytes()
    (offset,) = struct.unpack_from("<I", content, 7 * 4)
    (n_features,) = struct.unpack_from("<I", content, offset + 8)
    state: Weights = {}
    transitions: Weights = {}
    records = content[offset + 12 : offset + 12 + 20 * n_features]
    for kind, source, target, weight in struct.iter_unpack("<IIId", records):
        if kind == 0:
            state[attributes[source], labels[target]] = weight
        else:
            transitions[labels[source], labels[target]] = weight
    for exact, printed in ((state, info.state_features), (transitions, info.transitions)):
        if exact.keys() != printed.keys() or any(abs(exact[key] - printed[key]) > 6e-7 for key in exact):
            raise ValueError(f"The weights in {model} are not those Tagger.info prints. New file version?")
    return [labels[k] for k in sorted(labels)], state, transitions


def _work(job: IO[bytes], answer: IO[bytes]) -> None:
    """Read the job, train, measure, tag, answer: all that the other process does."""
    run = CrfsuiteRun(parameters=pickle.load(job), start_bytes=_memory("VmRSS"))
    trainer = _TimedTrainer("lbfgs", run.parameters)
    for sentence, reference in _read_until_none(job):
        begin = time.perf_counter()
        trainer.append(sentence, reference)
        run.append_seconds += time.perf_counter() - begin
    run.data_bytes = _memory("VmRSS")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.crfsuite"
        cpu = time.process_time()
        trainer.start(run)
        trainer.train(str(model))
        run.seconds = time.perf_counter() - trainer.started
        run.cpu_seconds = time.process_time() - cpu
        run.peak_bytes = _memory("VmHWM")
        run.model_bytes = model.stat().st_size
        run.labels, run.state_features, run.transitions = _read_weights(model)
        tagger = pycrfsuite.Tagger()
        tagger.open(str(model))
        for sentence in _read_until_none(job):
            begin = time.perf_counter()
            run.predictions.append(tagger.tag(sentence))
            run.tag_seconds += time.perf_counter() - begin
        tagger.close()
    # Plain types: a class would be named after this process's `__main__`.
    pickle.dump(vars(run) | {"iterations": [astuple(step) for step in run.iterations]}, answer)


# ------------------------------------------------------------------------------------ command line


def token_error(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> float:
    """Fraction of tokens given a wrong label."""
    pairs = [pair for a, b in zip(y_true, y_pred, strict=True) for pair in zip(a, b, strict=True)]
    return sum(a != b for a, b in pairs) / len(pairs)


def table(run: CrfsuiteRun, y_test: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """List the figures of a run as names and printable values."""
    megabytes = [f"{count / 2**20:.0f}" for count in (run.start_bytes, run.data_bytes, run.peak_bytes)]
    n_tokens = sum(len(sentence) for sentence in y_test)
    return [
        ("objective (exact, sum)", f"{run.objective:.9f}"),
        ("objective (last in log)", f"{run.iterations[-1].loss:.6f}" if run.iterations else "none"),
        ("stopped because", run.stopped_because),
        ("iterations", f"{run.n_iterations}"),
        ("evaluations", f"{run.n_evaluations}"),
        ("seconds appending", f"{run.append_seconds:.2f}"),
        ("seconds training (cpu)", f"{run.seconds:.2f} ({run.cpu_seconds:.2f})"),
        ("seconds generating features", f"{run.generation_seconds:.2f}"),
        ("seconds per iteration", f"{run.seconds_per_iteration:.4f}"),
        ("features", f"{run.n_features}"),
        ("active features", f"{run.n_active}"),
        ("MB start / data / peak", " / ".join(megabytes)),
        ("test token error", f"{100 * token_error(y_test, run.predictions):.3f} %"),
        ("test tokens/s from dicts", f"{n_tokens / run.tag_seconds:.0f}"),
    ]


def main() -> None:
    """Train CRFsuite on a treebank and print what it took."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("treebank")
    parser.add_argument("--label", choices=sorted(LABEL_COLUMNS), default="upos")
    parser.add_argument("--c1", type=float, default=0.5)
    parser.add_argument("--c2", type=float, default=0.0)
    parser.add_argument("--all-possible-states", action="store_true")
    parser.add_argument("--all-possible-transitions", action="store_true")
    parser.add_argument("--max-iterations", type=int)
    parser.add_argument("--epsilon", type=float, default=1e-5)
    parser.add_argument("--delta", type=float, default=1e-5)
    options = vars(parser.parse_args())
    name, label = options.pop("treebank"), options.pop("label")
    train_tokens, y = read_treebank(name, "train", label)
    test_tokens, y_test = read_treebank(name, "test", label)
    X = [usual_attributes(tokens) for tokens in train_tokens]
    run = train_crfsuite(X, y, **options, X_test=[usual_attributes(tokens) for tokens in test_tokens])
    given = " ".join(f"{option}={value}" for option, value in options.items() if value not in (None, False))
    print(f"{name}: {len(y)} sentences, {sum(map(len, y))} tokens, {given}")
    for title, value in table(run, y_test):
        print(f"  {title:<28} {value}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        _work(sys.stdin.buffer, sys.stdout.buffer)
    else:
        main()
