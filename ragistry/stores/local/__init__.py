"""The embedded store: an SQLite database, with derived indexes of words and vectors."""

from ragistry.stores.local.store import LocalStore

__all__ = ["LocalStore"]
