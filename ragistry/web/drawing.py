"""A technique as a Mermaid flowchart: its own steps where it is a pipeline, else what it stands on."""

from __future__ import annotations

from ragistry.pipelines.technique import PipelineTechnique
from ragistry.techniques.registry import TechniqueRegistry


def drawn(registry: TechniqueRegistry, name: str) -> str:
    """The chart of one technique of the registry; raises `ConfigError` where a pipeline cannot be built here."""
    if issubclass(registry.technique_class(name), PipelineTechnique):
        chart: str = registry.get(name).pipeline.mermaid()
        return chart
    ids: dict[str, str] = {}
    lines = ["flowchart LR", '    query(["query"])']
    _draw(registry, name, ids, lines)
    lines += [f"    query --> {ids[leaf]}" for leaf in ids if not _below(registry, leaf)]
    lines += ['    documents(["documents"])', f"    {ids[name]} --> documents"]
    return "\n".join(lines) + "\n"


def _draw(registry: TechniqueRegistry, name: str, ids: dict[str, str], lines: list[str]) -> None:
    if name in ids:
        return
    ids[name] = f"t{len(ids)}"
    use = registry.entry(name).use
    label = _text(name) if use == name else f"{_text(name)}<br/>{_text(use)}"
    lines.append(f'    {ids[name]}["{label}"]')
    for below in _below(registry, name):
        _draw(registry, below, ids, lines)
        lines.append(f"    {ids[below]} --> {ids[name]}")


def _below(registry: TechniqueRegistry, name: str) -> list[str]:
    """The techniques that this one calls."""
    entry = registry.entry(name)
    return [below for below in dict.fromkeys((entry.base, *entry.bases)) if below]


def _text(text: str) -> str:
    """Text that Mermaid takes for nothing but text."""
    return "".join(part if part.isalnum() or part in "_-. " else f"#{ord(part)};" for part in text)
