"""The models of documents.yaml and vector_stores.yaml, made from the settings of each file.

techniques.yaml is checked by `ragistry.techniques`, models.yaml by `ragistry.config.models`.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
)
from pydantic_core import InitErrorDetails

from ragistry.config.archives import Text
from ragistry.config.problems import Problems
from ragistry.config.settings import SOURCES, Settings, Strict
from ragistry.config.yaml_file import YamlFile, read_yaml
from ragistry.utils.wording import shown

Model = TypeVar("Model", bound=BaseModel)
COLLECTION_NAME = r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$"
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9._-]+")
NAME_RULE = "1 to 63 of letters, digits, '.', '_' and '-', beginning with a letter or digit"


def settings_of(*section: str) -> dict[str, Any]:
    """Return the settings of a section of a file by key, as arguments of `create_model`."""
    found = {}
    for name, source in SOURCES.items():
        field = Settings.model_fields[name]
        found.update({key[-1]: (field.annotation, field) for key in source.keys if key[:-1] == section})
    return found


def slug(name: str) -> str:
    """Turn a text into the name of a collection: "My Papers" becomes "my-papers".

    Returns the text unchanged if it has no letter or digit for a name.
    """
    if re.match(COLLECTION_NAME, name):
        return name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return _NOT_IN_NAMES.sub("-", plain).strip("-._").lower()[:63] or name


class CollectionEntry(Strict):
    """A named, described set of sources."""

    name: str = Field(pattern=COLLECTION_NAME, description="1 to 63 letters, digits, `.`, `_` and `-`")
    display_name: str | None = Field(default=None, description="the name to show")
    description: Text = Field(default="", description="what it contains; people, routers and models choose by this")
    formerly: str | None = Field(default=None, description="the old name of its chunks during a rename")


class Library(Strict):
    """The keys of documents.yaml that are not settings: the collections, and texts of the search tool."""

    collections: list[CollectionEntry] = Field(default=[], description="the collections, in the order of lists")
    description: str | None = Field(
        default=None, description="description of the search tool, instead of the built-in one"
    )
    param_query: str | None = Field(default=None, description="description of the search tool's parameter `query`")

    @field_validator("collections", mode="before")
    @classmethod
    def _none_is_empty(cls, value: object) -> object:
        if value is not None and not isinstance(value, list):
            raise ValueError(f"must be a list, got {shown(value)}; write `- name: …`")
        return value or []

    @field_validator("collections")
    @classmethod
    def _names_differ(cls, value: list[CollectionEntry]) -> list[CollectionEntry]:
        names = [entry.name for entry in value]
        errors: list[InitErrorDetails] = [
            {
                "type": "value_error",
                "loc": (place, "name"),  # each is reported at its own line
                "input": name,
                "ctx": {"error": ValueError(f"collection {name!r} is listed twice; rename one")},
            }
            for place, name in enumerate(names)
            if name in names[:place]
        ]
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return value


class StoreSection(BaseModel):
    """The store of the library; the other keys belong to that store."""

    model_config = ConfigDict(extra="allow", frozen=True)

    use: str = Field(description=Settings.model_fields["store"].description)


def _as_mapping(store: Any) -> Any:
    if store is not None and not isinstance(store, dict):
        raise ValueError(f"must be a mapping such as {{use: local}}, got {shown(store)}")
    return store


class _WholeAddress(Strict):
    retired: ClassVar = dict.fromkeys(
        ("port", "ssl"), "is part of the address; write host: http://HOST:PORT, or https://HOST:PORT"
    )


_chroma = settings_of("vector_stores.yaml", "chromadb")
_server = {key: field for key, field in _chroma.items() if key not in ("collection_name", "persist_directory")}
ChromaServer = create_model("ChromaServer", __base__=_WholeAddress, **_server)
ChromaServer.__doc__ = "A ChromaDB server, if ``host`` is set."
ChromaSection = create_model("ChromaSection", __base__=_WholeAddress, **_chroma)
ChromaSection.__doc__ = "The older form of ``store: {use: chroma, …}``: a folder or, if ``host`` is set, a server."
DocumentsFile = create_model("DocumentsFile", __base__=Library, **settings_of("documents.yaml"))
DocumentsFile.__doc__ = "config/documents.yaml: the library, its collections, and how documents are cut and embedded."
VectorStoresFile = create_model(
    "VectorStoresFile",
    __base__=Strict,
    store=(
        Annotated[StoreSection | None, BeforeValidator(_as_mapping)],
        Field(default=None, description="the store of the library, and its settings"),
    ),
    chromadb=(ChromaSection, Field(default_factory=ChromaSection)),
    **settings_of("vector_stores.yaml"),
)
VectorStoresFile.__doc__ = "config/vector_stores.yaml."
FILES: dict[str, type[Strict]] = {"documents.yaml": DocumentsFile, "vector_stores.yaml": VectorStoresFile}


def read_file(path: Path, model: type[Model], problems: Problems) -> tuple[YamlFile, Model | None]:
    """Read a file, and check it against a model.

    Args:
        path: The file.
        model: The model of its content.
        problems: Receives all errors of the content.

    Returns:
        The file, and its content as ``model`` or None if it is invalid.

    Raises:
        InvalidConfigError: The file is not YAML or cannot be read.
    """
    file = read_yaml(path)
    try:
        return file, model.model_validate(file.data)
    except ValidationError as error:
        problems.add_validation(file, [], model, error)
        return file, None
