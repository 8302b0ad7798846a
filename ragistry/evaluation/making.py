"""Making the techniques that are compared: first those that need no index, then the others over one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragistry.errors import ConfigError
from ragistry.evaluation.configured import Varied, resolved, stands_on
from ragistry.evaluation.contenders import Contender
from ragistry.evaluation.from_program import (
    NeedsIndexError,
    attempted,
    described,
    from_ready,
    is_ready,
    kept_by,
    made_of,
)
from ragistry.evaluation.grid import Variant
from ragistry.evaluation.indexing import DatasetIndex
from ragistry.protocols import Technique
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.techniques.shape import wanted_resources


class NotIndexed(Mapping[str, Any]):
    """What techniques can be made of before the corpus is indexed: models, and a store that cannot be used yet."""

    def __init__(self, models: Mapping[str, Any]) -> None:
        self._models = models

    def __getitem__(self, name: str) -> Any:
        if name == "store":
            raise NeedsIndexError(name)
        return self._models[name]

    def __contains__(self, name: object) -> bool:
        return name == "store" or name in self._models

    def __iter__(self) -> Iterator[str]:
        return iter(["store", *self._models])

    def __len__(self) -> int:
        return 1 + len(self._models)


@dataclass(frozen=True, slots=True)
class Maker:
    """``given``: technique → what a program gave for it, None: its entry. ``models``: by the parameter's name."""

    given: Mapping[str, Any]
    entries: Varied
    models: Mapping[str, Any]

    def early(self, variants: Sequence[Variant]) -> dict[str, Technique]:
        """By name, those that can be made, or fail to be made, without an index."""
        registry = self._registry(resources := NotIndexed(self.models))
        found: dict[str, Technique] = {}
        for variant in variants:
            try:
                found[variant.name] = self._made(variant, registry, resources)
            except NeedsIndexError:
                continue
        return found

    def over(
        self, index: DatasetIndex, variants: Sequence[Variant], early: Mapping[str, Technique], **library: Any
    ) -> list[Contender]:
        """Every variant over an index. ``library``: that of the workspace, where it is what is searched."""
        resources = {"store": index.store, **self.models, **library}
        registry = self._registry(resources)
        registry.searches_words = "text" in index.store.abilities
        found = []
        for variant in variants:
            given = self.given[variant.technique]
            if is_ready(given):
                found.append(from_ready(variant.name, given))
                continue
            made = early[variant.name] if variant.name in early else self._made(variant, registry, resources)
            configuration, unknown = (
                (resolved(registry, _entry(variant), self.models) | kept_by(made, resources), "")
                if given is None
                else described(given, made, variant, resources)
            )
            found.append(
                Contender(
                    variant.name,
                    RegisteredTechnique(variant.name, made),
                    {**configuration, **index.configuration},
                    index,
                    own_top_k="top_k" in variant.changes,
                    unknown=unknown,
                )
            )
        return found

    def _registry(self, resources: Mapping[str, Any]) -> TechniqueRegistry:
        return TechniqueRegistry(self.entries.file, self.entries.checked, resources)

    def _made(self, variant: Variant, registry: TechniqueRegistry, resources: Mapping[str, Any]) -> Technique:
        given = self.given[variant.technique]
        if given is None:
            return attempted(lambda: _of_entry(registry, _entry(variant), resources))
        return attempted(lambda: given) if is_ready(given) else made_of(given, variant, resources)


def _entry(variant: Variant) -> str:
    return variant.name if variant.changes else variant.technique


def _of_entry(registry: TechniqueRegistry, name: str, resources: Mapping[str, Any]) -> Technique:
    for used in stands_on(registry, name):
        wanted = wanted_resources(registry.technique_class(used))
        if "library" not in resources and ("targets" in wanted or wanted.get("library")):
            raise ConfigError(
                f"technique {used!r} chooses between the collections of a library, and a test set is one; compare it "
                "on the workspace's own library with --queries FILE (in Python, with read_library)"
            )
    return registry.get(name).technique
