"""Read config/models.yaml: the language models and rerankers that techniques can use, by name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ragistry.config.problems import Problems, dotted
from ragistry.config.settings import CONFIG_FOLDER, DEFAULTS, is_there, sendable
from ragistry.config.yaml_file import YamlFile, fill_in, read_yaml

MODELS_FILE = "models.yaml"
KINDS = ("generators", "rerankers", "encoders")
SECRET_LENGTH = 4
"""Minimum length in characters of values hidden in messages; shorter ones are not keys, and occur in words."""


class ModelSection(BaseModel):
    """One model; the other keys are arguments of its class."""

    model_config = ConfigDict(extra="allow", frozen=True)

    use: str = Field(description="a built-in name, that of an installed plugin, or module:Class")


class ModelsFile(BaseModel):
    """config/models.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    generators: dict[str, ModelSection] | None = Field(
        default=None, description="language models by name: `use` is ollama, openai, or module:Class"
    )
    rerankers: dict[str, ModelSection] | None = Field(
        default=None, description="cross-encoders by name: `use` is folder, tei, openai, maxsim, or module:Class"
    )
    encoders: dict[str, ModelSection] | None = Field(
        default=None, description="sparse encoders of learned_sparse by name: `use` is folder or module:Class"
    )


ApiKey = Annotated[str | None, AfterValidator(lambda key: sendable(key or "") or None), Field(repr=False)]
"""Sent as ``Authorization: Bearer`` and never shown in messages."""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model of the file: ``config`` has the arguments of its class, with environment variables filled in.

    ``hidden``: the text of each variable, and its form in the file, which `hide` restores in messages. ``unset``: a
    line for each variable that is not set.
    """

    kind: str
    name: str
    use: str
    config: dict[str, Any]
    file: YamlFile
    hidden: dict[str, str] = field(default_factory=dict)
    unset: list[str] = field(default_factory=list)

    @property
    def keys(self) -> list[str | int]:
        """The keys that lead to the entry in the file."""
        return [self.kind, self.name]

    def hide(self, message: str) -> str:
        """Replace the values of variables, which may be API keys, in a message."""
        for value, written in self.hidden.items():
            message = message.replace(value, written)
        return message


def read_models(root: Path, environ: Mapping[str, str] | None = None) -> list[ModelEntry]:
    """Read the models.yaml of a workspace, or the packaged one. Raises `InvalidConfigError`.

    ``${NAME}`` is an environment variable; `models.registry` reports unset ones with the other errors of the entries.
    """
    path = root / CONFIG_FOLDER / MODELS_FILE
    file, problems = read_yaml(path if is_there(path) else DEFAULTS / MODELS_FILE), Problems()
    try:
        ModelsFile.model_validate(file.data)
    except ValidationError as error:
        problems.add_validation(file, [], ModelsFile, error)
    problems.report()
    environ = os.environ if environ is None else environ
    entries = []
    for kind in KINDS:
        for name, section in (file.data.get(kind) or {}).items():
            config = {key: value for key, value in section.items() if key != "use"}
            entry = ModelEntry(kind, name, section["use"], config, file)
            for key, value in config.items():
                config[key] = fill_in(value, [*entry.keys, key], partial(_look_up, entry, environ))
            entries.append(entry)
    return entries


def _look_up(entry: ModelEntry, environ: Mapping[str, str], name: str, keys: Sequence[str | int]) -> str:
    """Look up a variable of an entry, and record its value, or that it is not set."""
    found, written = environ.get(name, ""), f"${{{name}}}"
    if len(found.strip()) >= SECRET_LENGTH:
        entry.hidden[found.strip()] = written
    if not found.strip():
        entry.unset.append(
            f"{entry.file.place(keys)}: {dotted(keys)}: the environment variable {name!r} is not set; "
            f"set it, or write the value in place of {written!r}"
        )
    return found
