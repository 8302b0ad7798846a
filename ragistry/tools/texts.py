"""The words in which the tool is described to a model: the built-in ones, and those of documents.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ragistry.config.yaml_file import read_yaml
from ragistry.errors import InvalidConfigError

GENERIC = (
    "Searches the user's personal document knowledge base for relevant passages. Call this tool when the user asks "
    "about content from documents they have added to their knowledge base, or when a question is likely answered by "
    "their stored documents rather than general knowledge or the web."
)
"""The tool where there is no collection, or one that has no description."""

SEVERAL = "Search the document library. Choose the collection that best matches your query."
"""The tool where there are two collections or more."""

QUERY = "What to look for in the knowledge base."
CURSOR = "Only to go on with an answer that was cut: the cursor that it ended with, all other arguments the same."


class Texts(NamedTuple):
    """What documents.yaml says in place of the built-in words; None: it says nothing."""

    description: str | None = None
    param_query: str | None = None


BUILT_IN = Texts()


class TextsFile:
    """``description`` and ``param_query`` of documents.yaml, read again only after a change of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._version: tuple[int, int, int] | None = None
        self._texts = BUILT_IN

    def texts(self) -> Texts:
        """The texts as the file now has them; while it is broken, as it had them before."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return BUILT_IN
        except OSError:
            return self._texts
        version = (status.st_ino, status.st_mtime_ns, status.st_size)
        if version != self._version:
            try:
                data = read_yaml(self.path).data
            except InvalidConfigError:
                return self._texts  # whoever reads the collections of the file tells what is wrong with it
            self._version = version
            self._texts = Texts(*(_text(data.get(key)) for key in Texts._fields))
        return self._texts


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
