"""A server of this program in a thread, for tests of its clients."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragistry import Workspace


@contextmanager
def served(workspace: Workspace, **options: bool) -> Iterator[str]:
    """The address of a server over the workspace."""
    import uvicorn

    from ragistry.cli.listening import listening_socket
    from ragistry.server.app import create_app

    bound = listening_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(create_app(workspace, **options), log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        bound.close()
    assert not thread.is_alive()
