"""What the registry puts around every technique, so that none has to do it for itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any

from ragistry.errors import RagistryError, TechniqueError
from ragistry.protocols import Technique
from ragistry.trace import stage
from ragistry.types import Document, Where
from ragistry.utils.limits import check_query, check_top_k
from ragistry.utils.where import matches, normalise


@contextmanager
def told_of(technique: str) -> Iterator[None]:
    """Let what a technique's own code raises leave the block with a note that names the technique."""
    try:
        yield
    except RagistryError:
        raise  # says what is wrong by itself
    except Exception as error:
        error.add_note(f"technique {technique!r} failed")
        raise


class RegisteredTechnique:
    """A technique under its name: input checked, the stage recorded, and what it returns checked.

    ``where`` is also how access is limited, so a document that does not meet it never gets out, whatever the
    technique did with the condition. Nor do more than ``top_k``: what asks may have no room for more.
    """

    __slots__ = ("name", "technique")

    def __init__(self, name: str, technique: Technique) -> None:
        self.name = name
        self.technique = technique

    def __getattr__(self, name: str) -> Any:
        """Whatever else the technique has is the technique's own."""
        return getattr(object.__getattribute__(self, "technique"), name)

    def __repr__(self) -> str:
        return f"<technique {self.name!r}: {type(self.technique).__name__}>"

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        check_query(query)
        if top_k is not None:
            check_top_k(top_k)
        condition = None if where is None else normalise(where)
        with stage(self.name) as this, told_of(self.name):
            documents = self.technique.retrieve(query, top_k=top_k, where=condition)
            self._check(documents, condition)
            documents = documents[:top_k]
            this.documents_out = len(documents)
        return documents

    def _check(self, documents: Any, condition: Where | None) -> None:
        if not isinstance(documents, list) or not all(isinstance(item, Document) for item in documents):
            raise TechniqueError(
                f"technique {self.name!r} returned {type(documents).__name__} {str(documents)[:80]!r}; "
                "retrieve must return a list of Document"
            )
        strange = next((document for document in documents if not _is_finite(document.score)), None)
        if strange is not None:
            raise TechniqueError(
                f"technique {self.name!r} gave document {strange.id!r} the score {strange.score!r}; "
                "a score must be a finite number, by which documents are ordered"
            )
        if condition is None:
            return
        for document in documents:
            if not matches(condition, document.metadata):
                raise TechniqueError(
                    f"technique {self.name!r} ignored where={condition!r}: it returned {document.id!r}; "
                    "pass `where` on to the store or base"
                )


def _is_finite(score: Any) -> bool:
    try:
        return isfinite(score)
    except (TypeError, ValueError, OverflowError):
        return False
