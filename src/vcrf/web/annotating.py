"""The Label view: sentences of a pool that are worth labelling, answers in a file, a model that learns from them.

An answer is in the file before the browser is told so: the file is written whole and moved into place each time. A
service that starts with the file of an earlier one goes on where that ended, with the model that was trained last.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vcrf.data.conllu import FIELDS
from vcrf.data.readers import read_corpus, read_with_layout
from vcrf.data.text import read_text
from vcrf.errors import InputError, VcrfError
from vcrf.files import check_target, replacing_text
from vcrf.web.handing import Handing
from vcrf.web.limits import Refused
from vcrf.web.models import Models, Served, read_served

if TYPE_CHECKING:
    from vcrf.data import Corpus
    from vcrf.data.layout import Layout

RETRAINED = "retrained"
_SOURCE = "# source = "


class Answer(NamedTuple):
    """A sentence that a person has labelled."""

    tokens: tuple[str, ...]
    labels: tuple[str, ...]
    source: str


@dataclass
class Retraining:
    """How the last training on the answers went, or goes."""

    is_running: bool = False
    message: str = ""
    seconds: float | None = None
    n_answers: int = 0


class Annotating:
    """A pool of sentences, the answers so far, and where they are kept.

    Parameters
    ----------
    models : the models of the service; the first one suggests, until there is a retrained one
    pool : sentences and where each was read
    path : the file of the answers, CoNLL-U
    training : labelled sentences that the retrained model learns from too
    layout : their columns
    """

    def __init__(
        self, models: Models, pool: Sequence[tuple[list[str], str]], path: Path, training: Corpus | None = None,
        layout: Layout | None = None,
    ) -> None:  # fmt: skip
        self.models, self.path, self.training, self.layout = models, path, training, layout
        self.pool = [(list(tokens), source) for tokens, source in pool]
        self.field = layout.tag if layout is not None and layout.format == "conllu" else FIELDS.index("UPOS")
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, ...], Answer] = {}
        self._stamp: tuple[int, ...] = ()
        self._read_again()
        self.retraining = Retraining()
        self.handing, self._choosing = Handing(), threading.Lock()
        self._thread: threading.Thread | None = None
        self.name = self._free_name()
        self._read_retrained()

    def _free_name(self) -> str:
        """A name for the retrained model that no other has."""
        taken, name, n = {served.name for served in self.models}, RETRAINED, 1
        while name in taken:
            n += 1
            name = f"{RETRAINED}-{n}"
        return name

    def _read_retrained(self) -> None:
        """Go on with the model of an earlier service."""
        if not self.model_path.exists():
            return
        found = read_served(self.model_path, self.name)
        labels = [{str(label) for label in served.tagger.model_.labels} for served in (found, self.models.get())]
        if labels[0] != labels[1]:
            raise InputError(
                f"{self.model_path}: the model that was trained on the answers has other labels than "
                f"{self.models.get().path}. Move it away, or choose another file with --answers."
            )
        self.models.add(found)

    def _read_again(self) -> None:
        """Take what is in the file, if another service or an editor has written there; a file that is gone is not."""
        if self.path.exists() and _stamp_of(self.path) != self._stamp:
            self._answers = {answer.tokens: answer for answer in read_answers(self.path, self.field)}
            self._stamp = _stamp_of(self.path)

    @property
    def model_path(self) -> Path:
        """Where the retrained model goes: beside the answers."""
        return self.path.with_suffix(".vcrf")

    # ---- what is next ----

    def tagger_name(self) -> str:
        """The model that suggests."""
        return self.name if any(served.name == self.name for served in self.models) else self.models.get().name

    def view(self, n: int, by: str, per: str, who: str = "") -> dict[str, Any]:
        """The next sentences, and how far the work is; `who` asks is not given what others have at hand."""
        served = self.models.get(self.tagger_name())
        with self._lock:
            done = set(self._answers)
        left = [(tokens, source) for tokens, source in self.pool if tuple(tokens) not in done]
        with self._choosing:
            # Rather twice than never: those who have the last ones may have gone.
            offered = [row for row in left if not self.handing.is_out(tuple(row[0]), who)] or left
            found = served.tagger.suggest([tokens for tokens, _ in offered], n, by, per) if offered and n else []
            chosen = [offered[s.number][0] for s in found]
            shared = [self.handing.is_out(tuple(tokens), who) for tokens in chosen]
            self.handing.give([tuple(tokens) for tokens in chosen], who)
        posteriors = served.tagger.predict_marginals(chosen) if chosen else []
        tasks = [
            {
                "tokens": list(tokens), "source": offered[s.number][1], "usefulness": s.usefulness,
                "is_shared": is_shared,
                "labels": [str(label) for label in s.labels],
                "probabilities": [round(row[label], 4) for row, label in zip(rows, s.labels, strict=True)],
                "posterior": [{str(label): round(p, 4) for label, p in row.items()} for row in rows],
            }
            for s, tokens, rows, is_shared in zip(found, chosen, posteriors, shared, strict=True)
        ]  # fmt: skip
        return {
            "model": served.name, "labels": [str(label) for label in served.tagger.model_.labels], "tasks": tasks,
            "n_answers": len(done), "n_left": len(left), "n_pool": len(self.pool), "answers_file": self.path.name,
            "can_retrain": self.training is not None, "retraining": vars(self.retraining),
        }  # fmt: skip

    # ---- answers ----

    def answer(self, tokens: Sequence[Any], labels: Sequence[Any]) -> dict[str, Any]:
        """Keep the labels of a sentence of the pool; when this returns they are in the file."""
        key = tuple(tokens)
        sources = {tuple(sentence): source for sentence, source in self.pool}
        if key not in sources:
            raise Refused(400, "tokens: expected a sentence of the pool.")
        known = {str(label) for label in self.models.get().tagger.model_.labels}
        if len(labels) != len(key) or any(label not in known for label in labels):
            raise Refused(400, f"labels: expected one of the model's labels for each of the {len(key)} tokens.")
        with self._lock:
            self._read_again()
            answers = {**self._answers, key: Answer(key, tuple(labels), sources[key])}
            with replacing_text(self.path) as file:
                file.write(self._written(answers.values()).encode())
            self._answers, self._stamp = answers, _stamp_of(self.path)
        return {"n_answers": len(answers)}

    def export(self) -> str:
        """All answers as CoNLL-U."""
        with self._lock:
            return self._written(self._answers.values())

    def _written(self, answers: Any) -> str:
        return "".join(write_answer(answer, self.field) for answer in answers)

    # ---- retraining ----

    def retrain(self) -> dict[str, Any]:
        """Begin to train on the training data and the answers, from the weights of the model that suggests."""
        if self.training is None:
            raise Refused(400, "There are no training data: start with `vcrf serve MODEL --pool FILE --train FILE`.")
        with self._lock:
            if self.retraining.is_running:
                raise Refused(409, "Training is under way: wait for it.")
            if not self._answers:
                raise Refused(400, "There are no answers yet: label a sentence first.")
            answers = list(self._answers.values())
            self.retraining = Retraining(is_running=True, n_answers=len(answers))
        self._thread = threading.Thread(target=self._train, args=(answers,), name="vcrf-retrain", daemon=True)
        self._thread.start()
        return vars(self.retraining)

    def _train(self, answers: list[Answer]) -> None:
        began = time.perf_counter()
        try:
            old = self.models.get(self.tagger_name())
            served = retrained(old, self.training, answers, self.model_path, self.layout, self.name)
        except (VcrfError, OSError, MemoryError) as error:
            self.retraining = Retraining(message=f"Training failed: {error}", n_answers=len(answers))
            return
        self.models.add(served)
        seconds = time.perf_counter() - began
        said = f"Trained on {len(answers):,} answers more in {seconds:.1f} s; written to {self.model_path.name}."
        self.retraining = Retraining(message=said, seconds=seconds, n_answers=len(answers))


def retrained(
    old: Served, training: Corpus | None, answers: Sequence[Answer], path: Path, layout: Layout | None, name: str
) -> Served:  # fmt: skip
    """A model trained on more sentences, with the parameters and from the weights of another; written to a file."""
    from vcrf.estimators.file import load

    if old.path is None:
        raise InputError(f"The model {old.name} has no file, and training begins with one.")
    start = load(old.path)
    X = [*(training.tokens if training else []), *(list(answer.tokens) for answer in answers)]
    y = [*(training.labels if training else []), *(list(answer.labels) for answer in answers)]
    estimator = type(start)(**start.get_params(deep=False))
    # The optimum is the same with any start; a file that was combined or converted has parameters of its own.
    estimator.fit(X, y, start=start)
    if estimator.model_.facts is not None and layout is not None:
        estimator.model_ = replace(estimator.model_, facts=estimator.model_.facts.with_layout(layout))
    estimator.save(path)
    return read_served(path, name)


# ------------------------------------------------------------------------------------ files


def write_answer(answer: Answer, tag: int) -> str:
    """An answer as CoNLL-U."""
    blank = ["_"] * len(FIELDS)
    lines = [f"{_SOURCE}{answer.source}", f"# text = {' '.join(answer.tokens)}"]
    for number, (token, label) in enumerate(zip(answer.tokens, answer.labels, strict=True), 1):
        fields = blank.copy()
        fields[0], fields[1], fields[tag] = str(number), token, label
        lines.append("\t".join(fields))
    return "\n".join([*lines, "", ""])


def _stamp_of(path: Path) -> tuple[int, ...]:
    """What changes when a file is written."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_answers(path: Path, tag: int) -> list[Answer]:
    """Answers of an earlier service; none if the file is not there or empty."""
    check_target(path)
    if not path.exists() or not path.stat().st_size:
        return []
    corpus = read_corpus(path, tag, format="conllu")
    sources = [line.removeprefix(_SOURCE) for line in read_text(path).content.split("\n") if line.startswith(_SOURCE)]
    if len(sources) != len(corpus):
        raise InputError(
            f"{path} is no file of answers: expected a comment `{_SOURCE.strip()}` in each of its {len(corpus)} "
            "sentences. Choose another file."
        )
    rows = zip(corpus.tokens, corpus.labels, sources, strict=True)
    return [Answer(tuple(tokens), tuple(map(str, labels)), source) for tokens, labels, source in rows]


def read_training(path: Path, split: str | None, served: Served) -> tuple[Corpus, Layout]:
    """Training data in the columns that the model was trained on."""
    facts = served.facts
    return read_with_layout(path, None, split, None, None, facts.layout if facts else None)


@dataclass(frozen=True)
class PoolFile:
    """The files of the Label view, as they are given at the start."""

    pool: Path
    answers: Path
    training: Path | None = None
    training_split: str | None = None


def open_annotating(models: Models, files: PoolFile) -> Annotating:
    """Read the pool, the answers so far and the training data."""
    from vcrf.data.raw import open_raw

    served = models.get()
    facts = served.facts
    raw = open_raw(files.pool, "auto", None, None, facts.layout if facts else None)
    pool = [
        (sentence.tokens, f"{files.pool.name}:{sentence.first_line}")
        for block in raw.blocks
        for sentence in block
        if sentence.tokens
    ]
    if not pool:
        raise InputError(f"{files.pool}: no sentences to label. Expected text, CoNLL-U or columns.")
    if facts is not None and facts.tag_bundle:
        raise InputError(
            f"The Label view writes one column, and labels of this model are bundles ({facts.tag_bundle}). Serve the "
            "model without a pool."
        )
    training = layout = None
    if files.training is not None:
        training, layout = read_training(files.training, files.training_split, served)
    return Annotating(models, pool, files.answers, training, layout or (facts.layout if facts else None))
