"""`vcrf train --watch`: the training in a browser while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vcrf.cli.output import say

if TYPE_CHECKING:
    from vcrf.web.watching import LiveTraining

# A page asks every second: so long the end is kept for it.
_SECONDS = 3.0


@contextmanager
def watched_page(port: int, output: Path) -> Iterator[LiveTraining]:
    """Serve the Training view on this machine; at the end a page that looks on is told so, and the service is gone."""
    from vcrf.web import server
    from vcrf.web.models import Models
    from vcrf.web.service import Service
    from vcrf.web.watching import LiveTraining

    live = LiveTraining(output.stem)
    listening = server.listen("127.0.0.1", port)
    service = Service(Models(), hosts=server.LOOPBACK, live=live)
    with server.serving(service, listening):
        say(f"Watch the training at {server.address_of(listening, '127.0.0.1')}")
        yield live
        if live.is_watched and not live.is_running:
            live.seen_end.wait(_SECONDS)


def check_watch() -> None:
    """Refuse before any data are read if the page cannot be served."""
    from vcrf.web.server import check_installed

    check_installed()
