"""Files of annotation tools: Label Studio's JSON, and JSON lines with spans as Prodigy and doccano have them.

A task is a sentence: its tokens joined by blanks, and regions of that text with labels. Where labels mark spans (BIO,
BILOU) a region is a span and its label the kind; otherwise each token is a region of its own. Tasks say which, under
`scheme`; a file that does not has spans, to be written as BIO. Tokens without a region are outside all spans (O), or,
where tokens are regions, still open (None).

A task that a tagger suggested is no answer, whatever it predicts: what nobody has answered is left out. Labels that
break the rules of their scheme (I-PER after O) are more than spans can say: they go along under `predicted`, and count
where the person has left the span as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from vcrf.data.answers import is_accepted
from vcrf.data.corpus import Sentence
from vcrf.errors import InputError

SCHEMES = ("", "BIO", "BILOU", "BIOES")
_PREDICTED = "predicted"
# First, inside, last and only token of a span.
_PREFIXES = {"BIO": ("B", "I", "I", "B"), "BILOU": ("B", "I", "L", "U"), "BIOES": ("B", "I", "E", "S")}
_FROM, _TO = "label", "text"


class Task(NamedTuple):
    """A sentence for a person to label.

    Parameters
    ----------
    tokens, labels : the sentence and what a tagger says of it
    usefulness : why it was chosen
    probability : of the labels
    source : where it was read
    """

    tokens: Sequence[str]
    labels: Sequence[str]
    usefulness: float
    probability: float
    source: str


class Region(NamedTuple):
    """Characters start .. end-1 of the text, with labels: several where a person was not sure."""

    start: int
    end: int
    labels: tuple[str, ...]


# ------------------------------------------------------------------------------------ writing


def label_studio(tasks: Iterable[Task], scheme: str) -> str:
    """Tasks with predictions, to import into Label Studio (a `Labels` control named label over a `Text` named text)."""
    return json.dumps([_studio_task(task, scheme) for task in tasks], ensure_ascii=False, indent=1) + "\n"


def _studio_task(task: Task, scheme: str) -> dict[str, Any]:
    text = " ".join(task.tokens)
    result = [
        {
            "from_name": _FROM, "to_name": _TO, "type": "labels",
            "value": {"start": r.start, "end": r.end, "text": text[r.start : r.end], "labels": list(r.labels)},
        }
        for r in regions_of(task.tokens, task.labels, scheme)
    ]  # fmt: skip
    data = {
        "text": text, "tokens": list(task.tokens), "scheme": scheme, "usefulness": task.usefulness,
        "source": task.source, **_unsaid(task, scheme),
    }  # fmt: skip
    # Label Studio refuses scores that are not from 0 to 1.
    score = min(max(task.probability, 0.0), 1.0)
    return {"data": data, "predictions": [{"model_version": "vcrf", "score": score, "result": result}]}


def prodigy(tasks: Iterable[Task], scheme: str) -> str:
    """One task a line, with tokens and spans, as Prodigy reads them."""
    return "".join(json.dumps(_prodigy_task(task, scheme), ensure_ascii=False) + "\n" for task in tasks)


def _prodigy_task(task: Task, scheme: str) -> dict[str, Any]:
    places = _places(task.tokens)
    first = {start: i for i, (start, _) in enumerate(places)}
    last = {end: i for i, (_, end) in enumerate(places)}
    return {
        "text": " ".join(task.tokens),
        "tokens": [
            {"text": token, "start": start, "end": end, "id": i}
            for i, (token, (start, end)) in enumerate(zip(task.tokens, places, strict=True))
        ],
        "spans": [
            {"start": r.start, "end": r.end, "token_start": first[r.start], "token_end": last[r.end],
             "label": r.labels[0]}
            for r in regions_of(task.tokens, task.labels, scheme)
        ],
        "meta": {
            "scheme": scheme, "usefulness": task.usefulness, "probability": task.probability, "source": task.source,
            **_unsaid(task, scheme),
        },
    }  # fmt: skip


def json_lines(tasks: Iterable[Task]) -> str:
    """One object a line: tokens and labels; null is a label that is open. The answer is still to come."""
    shown = ({**t._asdict(), "tokens": list(t.tokens), "labels": list(t.labels), "answer": None} for t in tasks)
    return "".join(json.dumps(task, ensure_ascii=False) + "\n" for task in shown)


def _unsaid(task: Task, scheme: str) -> dict[str, Any]:
    """The labels, where those that are read off the regions would be others."""
    read = _region_labels(_places(task.tokens), regions_of(task.tokens, task.labels, scheme), scheme)
    return {} if read == list(task.labels) else {_PREDICTED: list(task.labels)}


def regions_of(tokens: Sequence[str], labels: Sequence[str], scheme: str) -> list[Region]:
    """Regions of a sentence's text: its spans, or each token where labels mark none."""
    return _regions(_places(tokens), labels, scheme)


def _regions(places: list[tuple[int, int]], labels: Sequence[str], scheme: str) -> list[Region]:
    if not scheme:
        return [Region(start, end, (label,)) for (start, end), label in zip(places, labels, strict=True)]
    found: list[Region] = []
    before = ("O", "")
    for (start, end), label in zip(places, labels, strict=True):
        prefix, _, kind = label.partition("-")
        goes_on = prefix in ("I", "L", "E") and before[0] in ("B", "I") and before[1] == kind
        if goes_on:
            found[-1] = found[-1]._replace(end=end)
        elif prefix != "O":
            found.append(Region(start, end, (kind,)))
        before = (prefix, kind)
    return found


def _places(tokens: Sequence[str]) -> list[tuple[int, int]]:
    """First and last character + 1 of each token in the text."""
    places, start = [], 0
    for token in tokens:
        places.append((start, start + len(token)))
        start += len(token) + 1
    return places


# ------------------------------------------------------------------------------------ reading


def looks_like_annotations(name: str) -> bool:
    """Whether a file is one of an annotation tool, by its name."""
    plain = name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".xz")
    return plain.endswith((".json", ".jsonl"))


def parse_annotations(content: str, name: str) -> Iterator[Sentence | None]:
    """Sentences that a person has answered; None for a task that is still to be answered.

    A label is None where it is open, a frozenset where there are several. Tasks that were rejected are left out.

    Raises
    ------
    InputError
        With the file and the line, or the number of the task, when it is malformed.
    """
    if content.lstrip().startswith("["):
        for number, task in enumerate(_loaded(content, name, 1), 1):
            where = f"{name}: task {number}"
            yield from _studio_sentence(_object(task, where), where)
        return
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip():
            where = f"{name}:{number}"
            task = _object(_loaded(line, name, number), where)
            yield from (_studio_sentence if isinstance(task.get("data"), dict) else _line_sentence)(task, where)


def _studio_sentence(task: dict[str, Any], where: str) -> Iterator[Sentence | None]:
    if "data" not in task:
        raise InputError(f"{where}: expected `data` and `annotations`. Export as JSON from Label Studio, not JSON-MIN.")
    data = _object(task["data"], f"{where}: `data`")
    given = _listed(task.get("annotations") or [], f"{where}: `annotations`")
    answers = [answer for answer in (_object(item, where) for item in given) if not answer.get("was_cancelled")]
    if not answers:
        yield from [] if given else [None]
        return
    items = [_object(item, where) for item in _listed(answers[0].get("result"), f"{where}: `result`")]
    regions = [region for item in items for region in _studio_regions(item, where)]
    tokens = _tokens(data, where)
    yield Sentence(tokens, _labels(tokens, data, regions, data, where), where)


def _studio_regions(item: dict[str, Any], where: str) -> Iterator[Region]:
    """The region of a result, if it is one: others are choices, relations and remarks."""
    value = item.get("value")
    if not isinstance(value, dict):
        return
    if "labels" in value:
        yield _region(value.get("start"), value.get("end"), value["labels"], where)
    elif "start" in value:
        raise InputError(
            f"{where}: a region of type {item.get('type')!r:.40} cannot be read. Expected those of a Labels control "
            "over a Text."
        )


def _line_sentence(task: dict[str, Any], where: str) -> Iterator[Sentence | None]:
    given_meta = task.get("meta")
    meta: dict[str, Any] = given_meta if isinstance(given_meta, dict) else {}
    is_suggested = "usefulness" in task or "usefulness" in meta
    answer = task.get("answer", None if is_suggested else "accept")
    is_right = is_accepted(answer, where)
    if not is_right:  # rejected, ignored, or nobody has looked at it
        yield from [None] if is_right is None else []
        return
    tokens = _tokens(task, where)
    given = task.get("labels", task.get("label", task.get("entities")))
    has_spans = task.get("spans") is not None
    if not has_spans and isinstance(given, list) and given and not _are_regions(given):
        if len(given) != len(tokens):
            raise InputError(f"{where}: {len(tokens)} tokens have {len(given)} labels. Expected one a token.")
        yield Sentence(tokens, tuple(_open_label(label, where) for label in given), where)
        return
    if has_spans:
        spans = [_object(span, where) for span in _listed(task["spans"], f"{where}: `spans`")]
        regions = [_region(span.get("start"), span.get("end"), [span.get("label")], where) for span in spans]
    elif given is None and "answer" in task:  # Prodigy leaves them out where nothing was marked
        regions = []
    elif isinstance(given, list):
        regions = [_region(*_triple(item, where), where) for item in given]
    else:
        raise InputError(f"{where}: expected `spans`, or `labels`: got the keys {', '.join(map(str, task))}.")
    yield Sentence(tokens, _labels(tokens, task, regions, meta, where), where)


def _labels(
    tokens: tuple[str, ...], data: dict[str, Any], regions: list[Region], meta: dict[str, Any], where: str
) -> Any:
    """Labels of the tokens from the regions of the text; `meta` has the scheme, and what was predicted."""
    scheme = meta.get("scheme", "BIO")
    if scheme not in SCHEMES:
        raise InputError(f"{where}: `scheme` must be one of BIO, BILOU, BIOES or empty, got {scheme!r:.40}.")
    places = _token_places(tokens, data, where)
    _check_regions(places, regions, data, where)
    labels = _region_labels(places, regions, scheme)
    if _PREDICTED in meta:
        _restore(labels, places, regions, _predicted(meta[_PREDICTED], len(tokens), where), scheme)
    return tuple(labels)


def _check_regions(
    places: list[tuple[int, int]], regions: list[Region], data: dict[str, Any], where: str
) -> None:  # fmt: skip
    """Refuse regions that are no tokens, or overlap."""
    taken: set[int] = set()
    n_characters = len(data["text"]) if isinstance(data.get("text"), str) else places[-1][1]
    for region in regions:
        if region.end > n_characters:
            raise InputError(
                f"{where}: the region from {region.start} to {region.end} ({'/'.join(region.labels)}) ends after the "
                f"text, which has {n_characters} characters."
            )
        inside = _inside(places, region)
        if not inside or places[inside[0]][0] < region.start or places[inside[-1]][1] > region.end:
            raise InputError(
                f"{where}: the region from {region.start} to {region.end} ({'/'.join(region.labels)}) does not begin "
                "and end with a token. Correct the region, or split the token."
            )
        if taken.intersection(inside):
            raise InputError(f"{where}: the region from {region.start} to {region.end} overlaps another. Keep one.")
        taken.update(inside)


def _inside(places: list[tuple[int, int]], region: Region) -> list[int]:
    """Tokens of a region."""
    return [i for i, (start, end) in enumerate(places) if start < region.end and end > region.start]


def _region_labels(places: list[tuple[int, int]], regions: list[Region], scheme: str) -> list[Any]:
    """Labels by the rules of a scheme."""
    labels: list[Any] = ["O" if scheme else None] * len(places)
    for region in regions:
        inside = _inside(places, region)
        for place, i in enumerate(inside):
            names = [_prefixed(label, place, len(inside), scheme) for label in region.labels]
            labels[i] = names[0] if len(names) == 1 else frozenset(names)
    return labels


def _restore(
    labels: list[Any], places: list[tuple[int, int]], regions: list[Region], predicted: list[str], scheme: str
) -> None:  # fmt: skip
    """Take the predicted labels of the regions that are as they were predicted."""
    old = set(_regions(places, predicted, scheme))
    for region in regions:
        if region in old:
            for i in _inside(places, region):
                labels[i] = predicted[i]


def _predicted(value: Any, n_tokens: int, where: str) -> list[str]:
    found = _listed(value, f"{where}: `{_PREDICTED}`")
    if len(found) != n_tokens or not all(isinstance(label, str) and label for label in found):
        raise InputError(f"{where}: `{_PREDICTED}` must have one label a token, as `vcrf suggest` wrote them.")
    return found


def _prefixed(kind: str, place: int, n: int, scheme: str) -> str:
    if not scheme:
        return kind
    first, inside, last, only = _PREFIXES[scheme]
    prefix = only if n == 1 else first if place == 0 else last if place == n - 1 else inside
    return f"{prefix}-{kind}"


def _tokens(data: dict[str, Any], where: str) -> tuple[str, ...]:
    given = data.get("tokens")
    if given is None:
        text = data.get("text")
        if not isinstance(text, str):
            raise InputError(f"{where}: expected a `text` or `tokens`, got neither.")
        given = text.split()
    tokens = tuple(t.get("text") if isinstance(t, dict) else t for t in _listed(given, f"{where}: `tokens`"))
    if not tokens or not all(isinstance(token, str) and token for token in tokens):
        raise InputError(f"{where}: `tokens` must be words, and at least one.")
    return tokens  # type: ignore[return-value]


def _token_places(tokens: tuple[str, ...], data: dict[str, Any], where: str) -> list[tuple[int, int]]:
    """Where the tokens are in the text, which may have more blanks between them, or none."""
    text = data.get("text")
    if not isinstance(text, str):
        return _places(tokens)
    places, start = [], 0
    for token in tokens:
        start = text.find(token, start)
        if start < 0:
            raise InputError(f"{where}: the token {token!r:.40} is not in the text after those before it.")
        places.append((start, start + len(token)))
        start += len(token)
    return places


def _region(start: Any, end: Any, labels: Any, where: str) -> Region:
    names = tuple(labels) if isinstance(labels, list) else ()
    are_numbers = type(start) is int and type(end) is int and 0 <= start < end
    if not are_numbers or not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(
            f"{where}: a region needs a start, an end and a label, got {start!r:.20}, {end!r:.20}, {labels!r:.40}."
        )
    return Region(start, end, names)


def _triple(item: Any, where: str) -> tuple[Any, Any, list[Any]]:
    if isinstance(item, dict):  # doccano's newer exports
        return item.get("start_offset"), item.get("end_offset"), [item.get("label")]
    if not isinstance(item, list) or len(item) != 3:
        raise InputError(f"{where}: a span is [start, end, label], got {item!r:.60}.")
    return item[0], item[1], [item[2]]


def _are_regions(items: list[Any]) -> bool:
    """Whether these are doccano's regions, not labels of tokens."""
    return any(
        isinstance(item, dict) or (isinstance(item, list) and len(item) == 3 and type(item[0]) is int) for item in items
    )


def _open_label(label: Any, where: str) -> Any:
    if label is None or (isinstance(label, str) and label):
        return label
    if isinstance(label, list) and label and all(isinstance(one, str) and one for one in label):
        return frozenset(label)
    raise InputError(f"{where}: a label is text, null (open) or a list of labels, got {label!r:.40}.")


def _loaded(content: str, name: str, first_line: int) -> Any:
    """What a text that begins at a line of a file says."""
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        line, why = first_line + error.lineno - 1, f"{error.msg} at column {error.colno}"
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets in brackets
        line, why = first_line, str(error)
    raise InputError(f"{name}:{line}: not valid JSON: {why}. Export the annotations again.")


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected an object, got {type(value).__name__}.")
    return value


def _listed(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{where} must be a list, got {type(value).__name__}.")
    return value
