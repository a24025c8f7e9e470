"""The models of a service, by name, and the labelled sentences that they are tried on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vcrf.errors import VcrfError
from vcrf.labelling.attributes import reads_attributes
from vcrf.labelling.labelling import check_labels_fit
from vcrf.labelling.loading import load_tagger
from vcrf.model.file import read_facts
from vcrf.web.limits import Refused

if TYPE_CHECKING:
    from vcrf.data import Corpus
    from vcrf.labelling.tagger import Tagger
    from vcrf.model.facts import TrainingFacts

Answer = TypeVar("Answer")

MOST_RECENT = 12


class Remembered:
    """Answers that take long, each computed once, by one thread; others wait for it.

    Parameters
    ----------
    most : answers that are kept, those asked for last; None keeps all
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self._answers: dict[Any, Any] = {}
        self._locks: dict[Any, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Any, compute: Callable[[], Answer]) -> Answer:
        """The answer of a key."""
        with self._lock:
            own = self._locks.setdefault(key, threading.Lock())
        with own, ExitStack() as if_it_fails:
            if_it_fails.callback(self._forget, key)
            answer: Answer = self._answers[key] if key in self._answers else compute()
            if_it_fails.pop_all()
            self._keep(key, answer)
            return answer

    def _keep(self, key: Any, answer: Any) -> None:
        """Put an answer last, and forget the first ones if there are too many."""
        with self._lock:
            self._answers.pop(key, None)
            self._answers[key] = answer
            surplus = 0 if self.most is None else max(len(self._answers) - self.most, 0)
            old = list(self._answers)[:surplus]
        for each in old:
            self._forget(each)

    def _forget(self, key: Any) -> None:
        with self._lock:
            self._answers.pop(key, None)
            self._locks.pop(key, None)

    def __len__(self) -> int:
        """How much is held, be it answers or keys that are asked for."""
        return max(len(self._answers), len(self._locks))

    def get_soon(self, key: Any, compute: Callable[[], Answer]) -> Answer | None:
        """The answer, or None while a thread of its own computes it: nobody waits, and no worker is taken."""
        with self._lock:
            is_begun = key in self._locks
            self._locks.setdefault(key, threading.Lock())
        if not is_begun:
            threading.Thread(target=self._compute, args=(key, compute), daemon=True).start()
        answer: Answer | None = self._answers.get(key)
        if isinstance(answer, VcrfError):
            raise answer
        return answer

    def _compute(self, key: Any, compute: Callable[[], Any]) -> None:
        try:
            self._answers[key] = compute()
        except (VcrfError, MemoryError) as error:
            self._answers[key] = error if isinstance(error, VcrfError) else Refused(503, "Out of memory.")


@dataclass(eq=False)
class Served:
    """A model under its name; answers about it are remembered with it. `path` is its file, if it has one.

    What a request can ask for in any number of ways is among the `recent` answers, of which there are few.
    """

    name: str
    tagger: Tagger
    document: dict[str, Any]
    path: Path | None = None
    remembered: Remembered = field(default_factory=Remembered)
    recent: Remembered = field(default_factory=lambda: Remembered(MOST_RECENT))

    @property
    def facts(self) -> TrainingFacts | None:
        """How it was trained."""
        return self.tagger.model_.facts

    @property
    def reads_attributes(self) -> bool:
        """Whether tokens are given attributes, not words."""
        return reads_attributes(self.tagger.model_)

    def summary(self) -> dict[str, Any]:
        """What a list of models says of it."""
        model, facts = self.tagger.model_, self.facts
        return {
            "name": self.name,
            "estimator": self.document.get("estimator"),
            "reads": "attributes" if self.reads_attributes else "words",
            "labels": [str(label) for label in model.labels],
            "order": model.order,
            "n_weights": len(model.weights),
            "n_sentences": facts.n_sentences if facts else None,
            "n_tokens": facts.n_tokens if facts else None,
            "objective": facts.objective if facts else None,
            "gap": facts.gap if facts else None,
            "is_calibrated": model.calibration is not None,
            "has_history": bool(facts and facts.history),
        }


def read_served(path: Path, name: str) -> Served:
    """Read a model that labels sequences."""
    tagger = load_tagger(path)
    check_labels_fit(tagger.model_, str(path))
    document = {key: value for key, value in read_facts(path).items() if key != "facts"}
    return Served(name, tagger, document, path)


def names_of(paths: Sequence[Path]) -> list[str]:
    """A name for each file: its own without `.vcrf`, and a number where two are alike."""
    names: list[str] = []
    for path in paths:
        stem = path.name.removesuffix(".vcrf") or path.name
        name, n = stem, 1
        while name in names:
            n += 1
            name = f"{stem}-{n}"
        names.append(name)
    return names


class Models:
    """The models by name; the first is the one that is meant where none is named."""

    def __init__(self, served: Sequence[Served] = (), data: Corpus | None = None, data_name: str = "") -> None:
        self._served = {each.name: each for each in served}
        self.data, self.data_name = data, data_name

    def get(self, name: str | None = None) -> Served:
        """A model by its name."""
        if not self._served:
            raise Refused(404, "There is no model yet: training is under way.")
        if not name:
            return next(iter(self._served.values()))
        if name not in self._served:
            known = ", ".join(self._served)
            raise Refused(400, f"There is no model {name[:80]!r}: expected one of {known}.")
        return self._served[name]

    def add(self, served: Served) -> None:
        """Add a model, or put it in the place of the one of its name."""
        self._served = {**self._served, served.name: served}

    def labelled(self) -> Corpus:
        """The labelled sentences."""
        if self.data is None:
            raise Refused(404, "There are no labelled sentences: start with `vcrf serve MODEL --data FILE`.")
        return self.data

    def __iter__(self) -> Any:
        return iter(list(self._served.values()))

    def __len__(self) -> int:
        return len(self._served)
