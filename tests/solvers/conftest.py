"""Settings of the solver tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="package")
def one_blas_thread() -> Iterator[None]:
    """Tiny matrices: on a busy machine the spinning threads of BLAS cost twenty times the work."""
    with threadpool_limits(1):
        yield
