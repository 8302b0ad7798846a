"""The store in a Postgres database with pgvector."""

from ragistry.errors import ConfigError
from ragistry.utils.installation import install_command

try:
    import psycopg  # noqa: F401
except ImportError as error:
    raise ConfigError(f"the store 'postgres' needs 'psycopg'; run: {install_command('postgres')}") from error

from ragistry.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
