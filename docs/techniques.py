"""What the built-in techniques say of themselves."""

from __future__ import annotations

from typing import Any

from docs.markdown import code, table
from ragistry.techniques.classes import config_schema, find_class, first_sentence, offers, wanted_resources

COMMON = {
    "top_k": "default number of results",
    "min_score": "leave out results with a lower score",
    "strict": "raise an error if the generator fails",
}
"""Settings that many techniques have, and what they say of them."""


def built_in() -> list[str]:
    """The names of the techniques that come with the package; an alias is not one."""
    return [name for name, offer in offers().items() if offer.distribution == "ragistry" and name != "naive_rag"]


def technique_summaries() -> str:
    """A line a technique."""
    return table(
        ["`use`", "what it does", "builds on"],
        ((f"[`{name}`](#{name})", first_sentence(find_class(name)), _stands_on(name)) for name in built_in()),
    )


def technique_parameters(name: str) -> str:
    """The parameters of a technique's entry but those that the page says once for all."""
    schema = config_schema(find_class(name)) or {}
    fields = {key: field for key, field in schema["properties"].items() if (key, _text(field)) not in COMMON.items()}
    rows = [(code(key), _type(field), _default(field), _text(field)) for key, field in fields.items()]
    if not rows:
        return "It has no other settings."
    return table(["parameter", "values", "default", "meaning"], rows)


def _stands_on(name: str) -> str:
    wanted = wanted_resources(find_class(name))
    return ", ".join(code(key) for key in wanted if key in ("base", "bases"))


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(branch) for branch in field["anyOf"] if branch.get("type") != "null")
    if "enum" in field:
        return ", ".join(code(value) for value in field["enum"])
    kind = {"integer": "whole number", "number": "number", "string": "text", "array": "list", "object": "mapping"}
    low, high = field.get("minimum"), field.get("maximum")
    reach = {(True, True): f" {low} to {high}", (True, False): f" from {low}"}
    return kind.get(field.get("type", ""), "") + reach.get((low is not None, high is not None), "")


def _default(field: dict[str, Any]) -> str:
    value = field.get("default", "")
    if isinstance(value, str) and "\n" in value:  # a prompt, too long for a table
        return "its own"
    return "" if value is None or value == "" else code(value)


def _text(field: dict[str, Any]) -> str:
    return str(field.get("description", field.get("title", "")))
