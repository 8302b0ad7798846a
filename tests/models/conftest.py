"""Model servers of all kinds, and models at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.models.servers import Serve


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield Serve(stack)
