"""Ctrl-C in the middle of a write or a search: the next one goes on, and sees what was written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ragistry.stores import lock, state
from ragistry.stores.local import LocalStore
from tests.stores.local_stores import check, put, truth_of, version_of


@pytest.fixture
def store(quick_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(quick_path / "local", lock_timeout=0.2)) as opened:
        put(opened, version_of("a.md", 1))
        yield opened


def test_the_folders_lock_is_let_go_where_the_interrupt_comes_as_it_is_taken(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        lock.hold(*arguments, **options)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(state, "hold", interrupted)
        with pytest.raises(KeyboardInterrupt):
            put(store, version_of("b.md", 1))
    assert lock.users(store.folder / "store") == 0
    put(store, version_of("b.md", 1))


def test_a_transaction_that_nobody_could_end_is_given_up(store: LocalStore) -> None:
    """As where the traceback of the interrupt, which a notebook keeps, keeps the write's block from its end."""
    block = store._state.database.write()
    connection = block.__enter__()
    connection.execute("DELETE FROM chunks")
    put(store, version_of("b.md", 1))
    block.gen.close()  # type: ignore[attr-defined]
    put(store, version_of("c.md", 1))
    check(store, truth_of(*(version_of(f"{name}.md", 1) for name in "abc")))
