"""Counts of requests, in the text that Prometheus reads."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter

_EDGES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class RequestCounts:
    """Requests by route and status, their durations, those at work, and tokens labelled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = time.time()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._durations: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self.at_work = 0
        self.n_tokens = 0

    def begin(self) -> None:
        """Note that a request has begun."""
        with self._lock:
            self.at_work += 1

    def end(self, route: str, status: int, seconds: float) -> None:
        """Note that it is answered."""
        with self._lock:
            self.at_work -= 1
            self._requests[route, status] += 1
            buckets = self._durations.setdefault(route, [0] * (len(_EDGES) + 1))
            buckets[bisect_left(_EDGES, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]

    def add_tokens(self, n: int) -> None:
        """Note that tokens were labelled."""
        with self._lock:
            self.n_tokens += n

    def text(self) -> str:
        """All of it, a line a number. Routes are our own names: nothing of a request is in it."""
        with self._lock:
            lines = ["# TYPE vcrf_requests_total counter"]
            for (route, status), n in sorted(self._requests.items()):
                lines.append(f'vcrf_requests_total{{route="{route}",status="{status}"}} {n}')
            lines.append("# TYPE vcrf_request_seconds histogram")
            for route, buckets in sorted(self._durations.items()):
                total = 0
                for edge, n in zip((*_EDGES, "+Inf"), buckets, strict=True):
                    total += n
                    lines.append(f'vcrf_request_seconds_bucket{{route="{route}",le="{edge}"}} {total}')
                lines.append(f'vcrf_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
                lines.append(f'vcrf_request_seconds_count{{route="{route}"}} {total}')
            lines += [
                "# TYPE vcrf_requests_at_work gauge", f"vcrf_requests_at_work {self.at_work}",
                "# TYPE vcrf_tokens_total counter", f"vcrf_tokens_total {self.n_tokens}",
                "# TYPE vcrf_start_time_seconds gauge", f"vcrf_start_time_seconds {self._began:.3f}",
            ]  # fmt: skip
        return "\n".join(lines) + "\n"
