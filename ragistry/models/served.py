"""What a server that speaks OpenAI's protocol tells of itself."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ragistry.errors import ModelError, ModelNotFoundError
from ragistry.models.known import known_model
from ragistry.ollama.failures import NO_KEY, RefusedError
from ragistry.ollama.http import JsonClient, Read

NOT_IMPLEMENTED = 501
"""How servers refuse that answer to POST alone."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """The model, the hexadecimal digest of its weights, the tokens that it takes in (empty and 0: not known).

    ``batch_size``: texts in one request at most, 0 where the server does not limit it. ``truncates``: it cuts longer
    texts without saying so.
    """

    model: str
    digest: str = ""
    max_tokens: int = 0
    batch_size: int = 0
    truncates: bool = False


def ask_served(server: JsonClient, model: str | None) -> Served:
    """Ask the server what it serves: Text Embeddings Inference has ``/info``, the others ``/v1/models``.

    ``model``: what is wanted, None for whatever is there. Of a server that refuses to tell it is not checked: many can
    embed and nothing else. Raises `ModelNotFoundError`, `ModelError`.
    """
    served = asked(server, "/info", served_by_tei, needed=model is None)
    if served is None:
        windows = asked(server, "/v1/models", windows_of, needed=model is None, last=True) or {}
        name = model or next(iter(windows), None)
        if name is None:
            raise ModelError(f"{server.server} does not tell which model it serves; name it")
        served = Served(name, max_tokens=windows.get(name, 0))
    is_path = served.model.startswith((".", "/"))
    if model and not is_path and _bare(model) != _bare(served.model):
        raise ModelNotFoundError(f"{server.server} serves {served.model!r}, not {model!r}; start it with that model")
    name = model or served.model
    return replace(served, model=name, max_tokens=served.max_tokens or _known_tokens(name))


def served_by_tei(info: Mapping[str, Any]) -> Served:
    """The answer to ``/info``."""
    digest = str(info.get("model_sha") or "")
    return Served(
        model=str(info["model_id"]),
        digest=digest if re.fullmatch("[0-9a-f]+", digest) else "",
        max_tokens=int(info.get("max_input_length") or 0),
        batch_size=int(info.get("max_client_batch_size") or 0),
        truncates=bool(info.get("auto_truncate")),
    )


def windows_of(models: Mapping[str, Any]) -> dict[str, int]:
    """Names in the answer to ``/v1/models``, and the tokens that each model takes in, which vLLM tells."""
    return {str(row["id"]): int(row.get("max_model_len") or 0) for row in models["data"]}


def asked(
    server: JsonClient, path: str, read: Callable[[Any], Read], *, needed: bool = True, last: bool = False
) -> Read | None:
    """The answer; None where the server knows no such path, or fails at it and the answer is not ``needed``.

    ``last``: it cannot be had elsewhere, so that a server which wants an API key for it has failed too.
    """
    try:
        return server.get(path, read)
    except RefusedError as error:
        failed = error.status >= 500 and error.status != NOT_IMPLEMENTED
        if needed and (failed or (last and error.status in NO_KEY)):
            raise
        _log.info("%s", error)
        return None


def _bare(model: str) -> str:
    return model.lower().rpartition("/")[2]


def _known_tokens(model: str) -> int:
    known = known_model(model)
    return known.max_tokens if known else 0
