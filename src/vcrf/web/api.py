"""JSON under /api/v1: what the page asks for, and what a program may ask for too. `openapi.json` describes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

import vcrf
from vcrf.arguments.parameters import PARAMETERS
from vcrf.data import Corpus
from vcrf.data.raw import split_tokens
from vcrf.labelling.attributes import example_lines
from vcrf.labelling.viewing import lattice_view, sentence_view, why_view
from vcrf.page.plain import to_json
from vcrf.strings import has_surrogate
from vcrf.web.annotating import Annotating
from vcrf.web.attributes import attribute_sentences
from vcrf.web.bounding import bounds_view
from vcrf.web.limits import Refused, check_sentence, check_tokens, share, whole
from vcrf.web.models import Models, Served
from vcrf.web.service import Service, read_body, read_object
from vcrf.web.trying import compare_view, errors_view
from vcrf.web.views import families_view, model_history, trust_view

Handler = Callable[[Service, Request], Awaitable[Response]]


class Endpoint(NamedTuple):
    """A path below /api/v1, how it is called, and what answers."""

    path: str
    method: str
    handle: Handler


def json_answer(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(to_json(value), status, media_type="application/json")


async def _given(service: Service, request: Request) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # A form of another site cannot send this type, so that no other page can post here unasked.
    if kind != "application/json":
        raise Refused(415, "Expected Content-Type: application/json.")
    return read_object(await read_body(request, service))


def _name(value: Any, field: str = "model") -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Refused(400, f"{field}: expected text.")
    return value


def _tokens(value: Any, field: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(token, str) and token for token in value):
        raise Refused(400, f"{field}: expected a list of tokens, none of them empty.")
    for token in value:
        _check_characters(token, field)
    return list(value)


def _check_characters(text: str, field: str) -> None:
    if has_surrogate(text):
        raise Refused(400, f"{field}: expected whole characters, got half of one (a lone surrogate, as \\ud800).")


def _text(given: dict[str, Any]) -> str | None:
    text = given.get("text")
    if not isinstance(text, str):
        return None
    _check_characters(text, "text")
    return text


def _sentence(service: Service, served: Served, given: dict[str, Any]) -> list[Any]:
    """One sentence: tokens, or text with blanks between them."""
    if served.reads_attributes:
        listed = attribute_sentences({name: given[name] for name in ("tokens", "text") if name in given})
        if len(listed) > 1:
            raise Refused(400, f"Expected one sentence, got {len(listed)}.")
        tokens = listed[0] if listed else []
    elif "tokens" in given:
        tokens = _tokens(given["tokens"], "tokens")
    elif (text := _text(given)) is not None:
        tokens = split_tokens(text)
    else:
        raise Refused(400, "Expected `tokens`, a list, or `text`, a sentence with blanks between its tokens.")
    check_sentence(service.limits, len(tokens))
    return tokens


def _sentences(service: Service, served: Served, given: dict[str, Any]) -> list[list[Any]]:
    """Sentences of a request: `sentences`, one `tokens`, or `text` with one sentence a line."""
    if served.reads_attributes:
        found = attribute_sentences(given)
    elif "sentences" in given:
        listed = given["sentences"]
        if not isinstance(listed, list):
            raise Refused(400, "sentences: expected a list of lists of tokens.")
        found = [_tokens(tokens, "sentences") for tokens in listed]
    elif "tokens" not in given and (text := _text(given)) is not None:
        found = [tokens for line in text.split("\n") if (tokens := split_tokens(line))]
    else:
        found = [_sentence(service, served, given)]
    # An empty sentence is work too.
    check_tokens(service.limits, sum(max(len(tokens), 1) for tokens in found))
    return found


async def _models(service: Service, request: Request) -> Response:  # noqa: ARG001 - as the others
    return json_answer({
        "version": vcrf.__version__, "models": await service.work(_listed, service.models),
        "data": service.models.data_name or None, "n_data": len(service.models.data) if service.models.data else 0,
        "can_label": service.annotating is not None,
        "live": service.live.name if service.live is not None else None,
    })  # fmt: skip


def _listed(models: Models) -> list[dict[str, Any]]:
    return [{**served.summary(), "example": _example(served, models.data)} for served in models]


def _example(served: Served, data: Corpus | None) -> str:
    """A sentence to begin with, as the model reads it."""
    if served.reads_attributes:
        return served.remembered.get("example", lambda: "\n".join(example_lines(served.tagger.model_)))
    tokens = data.tokens if data is not None else []
    return " ".join(next((x for x in tokens if 6 <= len(x) <= 14), tokens[0])) if tokens else ""


async def _tag(service: Service, request: Request) -> Response:
    given = await _given(service, request)
    served = service.models.get(_name(given.get("model")))
    sentences = _sentences(service, served, given)
    k = whole(given.get("k", 5), "k", 0, service.limits.k)
    allowed = given.get("allowed")
    if allowed is not None and (not isinstance(allowed, list) or len(allowed) != len(sentences)):
        raise Refused(400, "allowed: expected one entry a sentence, null or a list with an entry a token.")
    if k:
        for tokens in sentences:
            check_sentence(service.limits, len(tokens))

    def views() -> Iterator[str]:
        for x, choice in zip(sentences, allowed or [None] * len(sentences), strict=True):
            yield to_json(sentence_view(served.tagger, x, k, _choice(choice)))

    found = await service.work_through(views(), request)
    service.counts.add_tokens(sum(map(len, sentences)))
    # Written sentence by sentence, on the workers: a large answer would keep the loop, and all others, waiting.
    names = to_json([str(y) for y in served.tagger.model_.labels])
    text = f'{{"model": {to_json(served.name)}, "names": {names}, "sentences": [{", ".join(found)}]}}'
    return Response(text, media_type="application/json")


def _choice(value: Any) -> list[Any] | None:
    if value is not None and not isinstance(value, list):
        raise Refused(400, "allowed: expected null, or a list with an entry a token.")
    return value


async def _explain(service: Service, request: Request) -> Response:
    given = await _given(service, request)
    served = service.models.get(_name(given.get("model")))
    tokens = _sentence(service, served, given)
    if not tokens:
        raise Refused(400, "Expected a sentence, got no token.")
    positions = given.get("position")
    chosen = None if positions is None else [whole(positions, "position", 0, len(tokens) - 1)]
    if chosen is None:
        # All tokens take the square of the length.
        check_sentence(service.limits, 5 * len(tokens))
    found = await service.work_long(why_view, served.tagger, tokens, chosen, _choice(given.get("allowed")))
    return json_answer({"model": served.name, **found})


async def _lattice(service: Service, request: Request) -> Response:
    given = await _given(service, request)
    served = service.models.get(_name(given.get("model")))
    tokens = _sentence(service, served, given)
    found = await service.work(lattice_view, served.tagger, tokens, _choice(given.get("allowed")))
    return json_answer({"model": served.name, **found})


def _page_of(service: Service, request: Request) -> tuple[int, int]:
    query = request.query_params
    return (
        whole(query.get("offset", 0), "offset", 0, 10_000_000),
        whole(query.get("limit", 20), "limit", 1, service.limits.rows),
    )


async def _errors(service: Service, request: Request) -> Response:
    query = request.query_params
    served = service.models.get(query.get("model"))
    offset, limit = _page_of(service, request)
    return json_answer(
        await service.work_long(
            errors_view, service.models, served, query.get("true", ""), query.get("predicted", ""),
            query.get("unknown", "") == "1", query.get("sort", "surest"), offset, limit,
        )
    )  # fmt: skip


async def _history(service: Service, request: Request) -> Response:
    name = request.query_params.get("model")
    if service.live is not None and name in (None, "", service.live.name):
        return json_answer(service.live.view())
    return json_answer(model_history(service.models.get(name)))


async def _compare(service: Service, request: Request) -> Response:
    query = request.query_params
    listed = list(service.models)
    if len(listed) < 2 and not (query.get("a") and query.get("b")):
        raise Refused(404, "There is one model: start with two, `vcrf serve A.vcrf B.vcrf --data FILE`.")
    a = service.models.get(query.get("a"))
    b = service.models.get(query.get("b") or next(each.name for each in listed if each.name != a.name))
    return json_answer(await service.work_long(compare_view, service.models, a, b, *_page_of(service, request)))


async def _trust(service: Service, request: Request) -> Response:
    query = request.query_params
    served = service.models.get(query.get("model"))
    confidence = share(query.get("confidence", 0.95), "confidence")
    return json_answer(await service.work_long(trust_view, served, confidence, query.get("unit", "token")))


async def _families(service: Service, request: Request) -> Response:
    served = service.models.get(request.query_params.get("model"))
    top = whole(request.query_params.get("top", 8), "top", 0, 100)
    return json_answer(await service.work_long(families_view, served, top))


async def _bounds(service: Service, request: Request) -> Response:
    served = service.models.get(request.query_params.get("model"))
    return json_answer(await service.work_long(bounds_view, service.models, served))


async def _suggest(service: Service, request: Request) -> Response:
    given = await _given(service, request)
    served = service.models.get(_name(given.get("model")))
    sentences = _sentences(service, served, given)
    n = whole(given.get("n", 10), "n", 1, service.limits.rows)
    by, per = _option(given.get("by"), "by"), _option(given.get("per"), "per")
    found = await service.work_long(served.tagger.suggest, sentences, n, by, per)
    return json_answer({
        "model": served.name,
        "suggestions": [
            {"number": s.number, "usefulness": s.usefulness, "tokens": sentences[s.number],
             "labels": [str(label) for label in s.labels]}
            for s in found
        ],
    })  # fmt: skip


def _option(value: Any, name: str) -> str:
    return _name(value, name) or str(PARAMETERS[name].default)


# ---- the Label view ----


def _annotating(service: Service) -> Annotating:
    if service.annotating is None:
        raise Refused(404, "There is nothing to label: start with `vcrf serve MODEL --pool FILE --answers FILE`.")
    return service.annotating


async def _label(service: Service, request: Request) -> Response:
    query = request.query_params
    n = whole(query.get("n", 5), "n", 0, 50)
    by, per = _option(query.get("by"), "by"), _option(query.get("per"), "per")
    return json_answer(await service.work_long(_annotating(service).view, n, by, per, query.get("who", "")[:40]))


async def _answer(service: Service, request: Request) -> Response:
    annotating = _annotating(service)
    given = await _given(service, request)
    labels = given.get("labels")
    if not isinstance(labels, list):
        raise Refused(400, "labels: expected a list.")
    return json_answer(await service.work(annotating.answer, _tokens(given.get("tokens"), "tokens"), labels))


async def _retrain(service: Service, request: Request) -> Response:
    annotating = _annotating(service)
    await _given(service, request)
    return json_answer(await service.work(annotating.retrain), 202)


async def _export(service: Service, request: Request) -> Response:  # noqa: ARG001
    text = await service.work(_annotating(service).export)
    return PlainTextResponse(text, headers={"Content-Disposition": 'attachment; filename="answers.conllu"'})


ENDPOINTS = (
    Endpoint("/models", "GET", _models),
    Endpoint("/tag", "POST", _tag),
    Endpoint("/explain", "POST", _explain),
    Endpoint("/lattice", "POST", _lattice),
    Endpoint("/errors", "GET", _errors),
    Endpoint("/history", "GET", _history),
    Endpoint("/compare", "GET", _compare),
    Endpoint("/trust", "GET", _trust),
    Endpoint("/families", "GET", _families),
    Endpoint("/bounds", "GET", _bounds),
    Endpoint("/suggest", "POST", _suggest),
    Endpoint("/label", "GET", _label),
    Endpoint("/label/answers", "POST", _answer),
    Endpoint("/label/retrain", "POST", _retrain),
    Endpoint("/label/export", "GET", _export),
)
