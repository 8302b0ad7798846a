"""ChromaDB as a store: `ChromaStore`, in a directory or on a server."""

from importlib.util import find_spec

from ragistry.errors import ConfigError
from ragistry.utils.installation import install_command

if find_spec("chromadb") is None:  # found, not imported: that takes a second
    raise ConfigError(f"the store 'chroma' and archives need 'chromadb'; run: {install_command('chroma')}")

from ragistry.stores.chroma.store import ChromaStore

__all__ = ["ChromaStore"]
