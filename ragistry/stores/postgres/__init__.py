"""The store in a Postgres database with pgvector."""

from ragistry.errors import ConfigError

try:
    import psycopg  # noqa: F401
except ImportError as error:
    raise ConfigError("the store 'postgres' needs the package 'psycopg'; pip install 'ragistry[postgres]'") from error

from ragistry.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
