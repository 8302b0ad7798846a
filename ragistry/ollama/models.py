"""How Ollama's answers about its models, and its embeddings, are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """A model that a server has: its name with tag, the hexadecimal digest of its files, their size in bytes."""

    name: str
    digest: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Tokens that a model was trained to take in, and those that its own parameters allow; 0 where nothing is said."""

    trained: int = 0
    num_ctx: int = 0

    def window(self, options: Mapping[str, Any]) -> int:
        """Tokens that a call takes in at most; its own ``num_ctx`` comes before that of the model."""
        return min(filter(None, (self.trained, int(options.get("num_ctx") or self.num_ctx))), default=0)


def installed(tags: Mapping[str, Any]) -> list[OllamaModel]:
    """The models in the answer of ``/api/tags``."""
    return [
        OllamaModel(
            str(row.get("model") or row["name"]),
            str(row.get("digest") or "").removeprefix("sha256:"),
            int(row.get("size") or 0),
        )
        for row in tags.get("models") or []
    ]


def embedded(answer: Mapping[str, Any]) -> tuple[list[list[float]], int]:
    """The vectors in the answer of ``/api/embed``, and how many tokens were read."""
    return answer["embeddings"], int(answer.get("prompt_eval_count") or 0)


def as_object(answer: Any) -> dict[str, Any]:
    """The answer itself; raises TypeError where it is no object."""
    if not isinstance(answer, dict):
        raise TypeError("not an object")
    return answer


def full_name(model: str) -> str:
    """The name with its tag, by which Ollama tells models apart; it ignores case."""
    name = model.lower()
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def limits_of(shown: Mapping[str, Any]) -> Limits:
    """The limits in the answer of ``/api/show``."""
    info = shown.get("model_info") or {}
    own = _NUM_CTX.search(shown.get("parameters") or "")
    return Limits(
        trained=min((int(value) for key, value in info.items() if key.endswith(".context_length")), default=0),
        num_ctx=int(own.group(1)) if own else 0,
    )
