"""A server with Ollama's protocol, without a model.

Its wire format and errors are those of https://github.com/ollama/ollama/blob/main/docs/api.md, or of
``server/routes.go`` if that page does not define them. The official Python client works with it.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from ragistry.testing.hashed import beginning, count_tokens, flawed, hashed_embedding
from ragistry.testing.loopback import Failure, LoopbackServer
from ragistry.testing.schemas import example_of
from ragistry.testing.wire import Reply, Request

_REASONS = {
    400: "invalid request",
    404: "model 'unknown' not found",
    429: "too many requests",
    500: "llama runner process has terminated: exit status 2",
    503: "server busy, please try again.  maximum pending requests exceeded",
}
_TOO_LONG = "the input length exceeds the context length"
_BROKEN = "an error was encountered while running the model: unexpected EOF"
_MADE = "2025-01-01T00:00:00Z"


class OllamaServer(LoopbackServer):
    """Has the ``models``, all with embeddings of ``dimension`` and a window of ``context_length`` tokens.

    ``answers``: the next answers of its models, each a text, or the last line of an answer of ``/api/chat`` with
    ``message`` and ``done_reason``; after that they repeat the prompt. ``cuts_silently``: it ignores
    ``truncate: false``. ``breaks_after``: pieces after which a stream ends with an error.
    """

    def __init__(
        self,
        models: Sequence[str] = ("nomic-embed-text:latest", "llama3.2:latest"),
        *,
        dimension: int = 64,
        context_length: int = 2048,
        version: str = "0.15.6",
    ) -> None:
        super().__init__()
        self.models = list(models)
        self.dimension = dimension
        self.context_length = context_length
        self.version = version
        self.answers: deque[str | dict[str, Any]] = deque()
        self.cuts_silently = False
        self.breaks_after: int | None = None

    def refusal(self, status: int) -> Any:
        return {"error": _REASONS.get(status, f"status {status}")}

    def answer(self, request: Request, flaw: Failure | None) -> Reply:
        body = request.body or {}
        if request.path in self._plain:
            return Reply(body=self._plain[request.path](self))
        if request.path not in self._of_models:
            return Reply(404, "404 page not found")
        name = self._found(body.get("model") or body.get("name") or "")
        if name is None:
            return Reply(404, {"error": f'model "{body.get("model")}" not found, try pulling it first'})
        return self._of_models[request.path](self, name, body, flaw)

    def digest(self, name: str) -> str:
        """Compute the digest of a model from its name."""
        return sha256(name.encode()).hexdigest()

    def _found(self, model: str) -> str | None:
        wanted = model if ":" in model.rpartition("/")[2] else f"{model}:latest"
        return next((name for name in self.models if name.lower() == wanted.lower()), None)

    def _tags(self) -> dict[str, Any]:
        return {"models": [self._row(name) for name in self.models]}

    def _row(self, name: str) -> dict[str, Any]:
        digest, details = self.digest(name), self._details()
        return {
            "name": name, "model": name, "modified_at": _MADE, "size": 274302450, "digest": digest, "details": details
        }  # fmt: skip

    def _details(self) -> dict[str, Any]:
        return {
            "parent_model": "", "format": "gguf", "family": "nomic-bert", "families": ["nomic-bert"],
            "parameter_size": "137M", "quantization_level": "F16",
        }  # fmt: skip

    def _show(self, name: str, _body: Mapping[str, Any], _flaw: Failure | None) -> Reply:
        info = {
            "general.architecture": "nomic-bert",
            "nomic-bert.context_length": self.context_length,
            "nomic-bert.embedding_length": self.dimension,
        }
        return Reply(
            body={
                "modelfile": f"FROM {name}",
                "parameters": "num_ctx                        8192",
                "template": "{{ .Prompt }}",
                "details": self._details(),
                "model_info": info,
                "capabilities": ["embedding", "completion"],
                "modified_at": _MADE,
            }
        )

    def _embed(self, name: str, body: Mapping[str, Any], flaw: Failure | None) -> Reply:
        content = body.get("input", [])
        texts = ([content] if content else []) if isinstance(content, str) else list(content)
        window = self._window(body)
        if any(count_tokens(text) > window for text in texts) and not self._may_cut(body):
            return Reply(400, {"error": _TOO_LONG})
        read = [beginning(text, window) if count_tokens(text) > window else text for text in texts]
        vectors = flawed([hashed_embedding(text, self.dimension) for text in read], flaw)
        return Reply(
            body={
                "model": name,
                "embeddings": vectors,
                "total_duration": 14143917,
                "load_duration": 1019500,
                "prompt_eval_count": sum(map(count_tokens, read)),
            }
        )

    def _embedding(self, _name: str, body: Mapping[str, Any], _flaw: Failure | None) -> Reply:
        prompt = body.get("prompt", "")
        return Reply(body={"embedding": hashed_embedding(prompt, self.dimension) if prompt else []})

    def _may_cut(self, body: Mapping[str, Any]) -> bool:
        return self.cuts_silently or body.get("truncate") is not False

    def _window(self, body: Mapping[str, Any]) -> int:
        return min(self.context_length, (body.get("options") or {}).get("num_ctx") or self.context_length)

    def _generate(self, name: str, body: Mapping[str, Any], _flaw: Failure | None) -> Reply:
        prompt = body.get("prompt") or ""
        return self._speak(name, body, prompt, lambda piece: {"response": piece})

    def _chat(self, name: str, body: Mapping[str, Any], _flaw: Failure | None) -> Reply:
        messages = body.get("messages") or []
        prompt = messages[-1]["content"] if messages else ""
        return self._speak(name, body, prompt, lambda piece: {"message": {"role": "assistant", "content": piece}})

    def _speak(self, name: str, body: Mapping[str, Any], prompt: str, shaped: Callable[[str], dict[str, Any]]) -> Reply:
        if body.get("truncate") is False and count_tokens(prompt) > self._window(body):
            return Reply(400, {"error": _TOO_LONG})
        said = self._said(body, prompt) if prompt else ""
        if isinstance(said, dict):
            last = {"model": name, "created_at": _MADE, "done": True, "done_reason": "stop", **said}
            return Reply(body=last) if body.get("stream") is False else Reply(lines=[last])
        words = re.findall(r"\s*\S+|\s+$", said)
        limit = (body.get("options") or {}).get("num_predict") or len(words)
        pieces = words[:limit]
        reason = ("length" if limit < len(words) else "stop") if prompt else "load"
        head = {"model": name, "created_at": _MADE}
        end = {
            "done": True, "done_reason": reason, "total_duration": 5043500667, "load_duration": 5025959,
            "prompt_eval_count": min(count_tokens(prompt), self._window(body)), "prompt_eval_duration": 325953000,
            "eval_count": len(pieces), "eval_duration": 290000000,
        }  # fmt: skip
        if body.get("stream") is False:
            return Reply(body={**head, **shaped("".join(pieces)), **end})

        def lines() -> Iterator[dict[str, Any]]:
            yield from ({**head, **shaped(piece), "done": False} for piece in pieces[: self.breaks_after])
            yield {**head, **shaped(""), **end} if self.breaks_after is None else {"error": _BROKEN}

        return Reply(lines=lines())

    def _said(self, body: Mapping[str, Any], prompt: str) -> str | dict[str, Any]:
        if self.answers:
            return self.answers.popleft()
        form = body.get("format")
        if isinstance(form, dict):
            return json.dumps(example_of(form))
        return "{}" if form == "json" else f"You said: {prompt}"

    _plain: Mapping[str, Callable[[OllamaServer], Any]] = {
        "/": lambda _self: "Ollama is running",
        "/api/version": lambda self: {"version": self.version},
        "/api/tags": _tags,
        "/api/ps": lambda _self: {"models": []},
    }
    _of_models: Mapping[str, Callable[[OllamaServer, str, Mapping[str, Any], Failure | None], Reply]] = {
        "/api/show": _show,
        "/api/embed": _embed,
        "/api/embeddings": _embedding,
        "/api/generate": _generate,
        "/api/chat": _chat,
    }
