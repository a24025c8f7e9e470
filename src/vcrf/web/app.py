"""The application: routes, and what is the same for every request."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import vcrf
from vcrf.page.files import PAGE_FILES, page_file
from vcrf.web import udpipe
from vcrf.web.api import ENDPOINTS, Handler, json_answer
from vcrf.web.forms import form_fields, query_fields
from vcrf.web.limits import Refused
from vcrf.web.openapi import openapi_text
from vcrf.web.service import ClientGone, Service, read_body

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOG = logging.getLogger("vcrf.web")

API = "/api/v1"
# Nothing but our own files, and no text that runs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
_MEDIA = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def build_app(service: Service) -> ASGIApp:
    """The application of a service."""
    routes = [
        _route("/health", "GET", _health, service, is_open=True),
        _route("/metrics", "GET", _metrics, service),
        _route("/models", "GET", _udpipe_models, service, is_text=True),
        _route("/process", "GET", _process, service, is_text=True),
        _route("/process", "POST", _process, service, is_text=True),
        _route(f"{API}/openapi.json", "GET", _openapi, service, is_open=True),
        *(_route(API + each.path, each.method, each.handle, service) for each in ENDPOINTS),
        *(_page_route(name, service) for name in PAGE_FILES),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _unknown, 405: _unknown}, lifespan=None)
    return _Around(app, service)


# ------------------------------------------------------------------------------------ routes


def _route(
    path: str, method: str, handle: Handler, service: Service, is_open: bool = False, is_text: bool = False
) -> Route:  # fmt: skip
    """A route whose errors are answered in its own way: as text (UDPipe's interface) or as JSON."""

    async def endpoint(request: Request) -> Response:
        request.scope["vcrf.route"] = path
        try:
            if not is_open:
                _check_token(service, request)
            return await handle(service, request)
        except Refused as error:
            return _refusal(error, is_text)
        except (ClientDisconnect, ClientGone):
            return PlainTextResponse("", 400)  # nobody is there to read it
        except Exception:  # noqa: BLE001 - whatever it is: a client gets a sentence, the log gets the rest
            _LOG.exception("%s %s failed", method, path)
            return _refusal(Refused(500, "The service failed to answer. Its log has the reason."), is_text)
        finally:
            service.release(request)

    return Route(path, endpoint, methods=[method])


def _refusal(error: Refused, is_text: bool) -> Response:
    headers = {"Retry-After": "1"} if error.status == 503 else {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if is_text:
        return PlainTextResponse(f"{error}\n", error.status, headers)
    answer = json_answer({"error": str(error)}, error.status)
    answer.headers.update(headers)
    return answer


def _check_token(service: Service, request: Request) -> None:
    if not service.token:
        return
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), service.token.encode()):
        raise Refused(401, "Expected the token of this service: the header Authorization: Bearer TOKEN.")


async def _unknown(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    said = "There is nothing here." if status == 404 else "This address is not called in this way."
    return json_answer({"error": said}, status) if request.url.path.startswith(API) else PlainTextResponse(said, status)


def _page_route(name: str, service: Service) -> Route:
    """A file of the page. The names are those of the package: no path of a request is looked up anywhere."""
    media = _MEDIA[name.rpartition(".")[2]]
    headers = {"Cache-Control": "no-cache"}

    async def serve(service: Service, request: Request) -> Response:  # noqa: ARG001
        return Response(page_file(name), media_type=media, headers=headers)

    path = "/" if name == "index.html" else f"/{name}"
    return _route(path, "GET", serve, service, is_open=True, is_text=True)


async def _health(service: Service, request: Request) -> Response:  # noqa: ARG001
    return json_answer({"status": "ok", "version": vcrf.__version__, "models": len(service.models)})


async def _metrics(service: Service, request: Request) -> Response:  # noqa: ARG001
    return Response(service.counts.text(), media_type="text/plain; version=0.0.4")


async def _openapi(service: Service, request: Request) -> Response:  # noqa: ARG001
    return Response(openapi_text(), media_type="application/json")


async def _udpipe_models(service: Service, request: Request) -> Response:  # noqa: ARG001
    return json_answer(udpipe.listed(service.models))


async def _process(service: Service, request: Request) -> Response:
    fields = query_fields(request.url.query.encode())
    if request.method == "POST":
        body = await read_body(request, service)
        fields |= form_fields(request.headers.get("content-type", ""), body)
    processing = udpipe.Processing(service.models, service.limits, fields)
    written = await service.work_through(processing.pieces(), request)
    service.counts.add_tokens(processing.n_tokens)
    return json_answer(processing.answer(written))


# ------------------------------------------------------------------------------------ around every request


class _Around:
    """Checks the name that we are called by, adds headers, counts."""

    def __init__(self, app: Starlette, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500
        self.service.counts.begin()

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        try:
            chosen: Callable[..., Any] = self.app if self._is_called_right(scope) else _WRONG_HOST
            await chosen(scope, receive, send_with_headers)
        finally:
            route = scope.get("vcrf.route", "other")
            self.service.counts.end(route, status, time.perf_counter() - began)

    def _is_called_right(self, scope: Scope) -> bool:
        """Whether the header Host is one of ours: a page of another name that leads here must not read answers."""
        if not self.service.hosts:
            return True
        host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        return name.strip("[]").lower() in self.service.hosts


_WRONG_HOST = PlainTextResponse("This service is called by another name: use the address that it told.\n", 400)
