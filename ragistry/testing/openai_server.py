"""A server with three variants of OpenAI's protocol for embeddings, answers and scores, without a model.

``tei`` is Text Embeddings Inference (its openapi.json); ``vllm`` and ``llama.cpp`` are those servers. They describe
themselves differently, and refuse requests differently.
"""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections import deque
from collections.abc import Iterator, Sequence
from struct import pack
from typing import Any, Literal

from ragistry.testing.hashed import beginning, count_tokens, flawed, hashed_embedding, tokens_of
from ragistry.testing.loopback import Failure, LoopbackServer
from ragistry.testing.schemas import example_of
from ragistry.testing.wire import Reply, Request

CREATED = 1_700_000_000
Accent = Literal["tei", "vllm", "llama.cpp"]
_TEI_TYPES = {413: "validation", 422: "tokenizer", 424: "backend", 429: "overloaded"}


class OpenAIServer(LoopbackServer):
    """Serves one model.

    Args:
        model: Name of the model.
        accent: Variant of the protocol.
        dimension: Length of a vector.
        max_tokens: Window of the model.
        max_batch: Maximum number of texts per request (TEI).
        auto_truncate: Cut longer texts, which TEI reports only in ``/info``.
        api_key: Refuse requests without this key.

    Attributes:
        answers: The next answers of the model, each a text or the ``choices`` entry of a completion, with ``message``
            and ``finish_reason``; after that it repeats the prompt.
        pace: Seconds before each piece of a stream.
        streamed: Number of pieces sent.
        streams: What it sends for a stream: deltas, ``message`` instead of ``delta`` in every event, a last event with
            the whole ``message`` after the deltas, or one JSON ``body`` on several lines.
        takes_schemas: Whether it accepts ``response_format``; otherwise it answers ``refuses_schemas_with``.
        seed: Another value is another model of the same name.
        noise: Added to the numbers of vectors, as by other hardware.
        root: Path of the protocol.
        refused: Parameters that it does not accept.
        index: How embeddings and scores have an index: programs in Go leave out 0, some count from 1 or send text.
        base64: Always send vectors in base64.
        as_text: Send the numbers of a vector, or the whole vector, as text.
        parts: Send the text of an answer as a list.
    """

    def __init__(
        self,
        model: str = "BAAI/bge-small-en-v1.5",
        *,
        accent: Accent = "tei",
        dimension: int = 64,
        max_tokens: int = 512,
        max_batch: int = 32,
        auto_truncate: bool = False,
        api_key: str | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.accent = accent
        self.dimension = dimension
        self.max_tokens = max_tokens
        self.max_batch = max_batch
        self.auto_truncate = auto_truncate
        self.api_key = api_key
        self.answers: deque[str | dict[str, Any]] = deque()
        self.takes_schemas = True
        self.refuses_schemas_with = 400
        self.pace = 0.0
        self.streamed = 0
        self.streams: Literal["deltas", "messages", "both", "body"] = "deltas"
        self.seed = ""
        self.noise = 0.0
        self.root = "/v1"
        self.refused: set[str] = set()
        self.index: Literal["number", "null", "missing", "without 0", "from 1", "text"] = "number"
        self.base64 = False
        self.as_text: Literal["", "numbers", "vector"] = ""
        self.parts = False

    def refusal(self, status: int, reason: str = "the server refuses") -> Any:
        if self.accent == "tei":
            return {"message": reason, "code": status, "type": _TEI_TYPES.get(status, "backend")}
        if self.accent == "vllm":
            return {"object": "error", "message": reason, "type": "BadRequestError", "param": None, "code": status}
        return {"error": {"code": status, "message": reason, "type": "server_error"}}

    def answer(self, request: Request, flaw: Failure | None) -> Reply:
        if self.api_key and request.headers.get("Authorization") != f"Bearer {self.api_key}":
            return Reply(401, self.refusal(401, "Unauthorized"))
        body, path = request.body or {}, request.path.removeprefix(self.root)
        if path == request.path and self.root:
            path = "elsewhere"
        if request.method == "POST" and (wrong := self._wrong(request, path)):
            return self._refuse(422 if self.accent == "tei" else 400, wrong)
        if path == "/embeddings":
            return self._embeddings(body, flaw)
        if path == "/chat/completions":  # with the accent of TEI too, so that one server is enough for a library
            return self._chat(body)
        if path == "/rerank" and self.accent != "tei":
            scores = _overlaps(body["query"], body["documents"])
            rows = [{**self._indexed(number), "relevance_score": score} for number, score in enumerate(scores)]
            return Reply(body={"model": self.model, "results": rows[: -1 if flaw == "short" else None][::-1]})
        if path == "/models" and self.accent != "tei":
            return Reply(body={"object": "list", "data": [self._row()]})
        if self.accent == "tei" and request.path == "/info":
            return Reply(body=self._info())
        if self.accent == "tei" and request.path == "/tokenize":
            return Reply(body=[_tokenized(text) for text in body["inputs"]])
        if self.accent == "tei" and request.path == "/rerank":
            return self._rerank(body["query"], body["texts"], flaw)
        return Reply(404, self.refusal(404, "Not Found"))

    def _wrong(self, request: Request, path: str) -> str:
        """Return the error in the body of a request; empty if it is valid."""
        if request.malformed or not isinstance(request.body, dict):
            return "the body is not a JSON object"
        for name in {"/embeddings": ("input",), "/chat/completions": ("messages",)}.get(path, ()):
            value = request.body.get(name)
            if not isinstance(value, str | list) or not value:
                return f"{name}: Field required"
        if path == "/chat/completions" and not all(
            isinstance(message, dict) and isinstance(message.get("content"), str)
            for message in request.body["messages"]
        ):
            return "messages: each needs a role and a content"
        if refused := sorted(self.refused & request.body.keys()):
            return f"Unsupported parameter: '{refused[0]}' is not supported with this model."
        return ""

    def _row(self) -> dict[str, Any]:
        limit = {"max_model_len": self.max_tokens} if self.accent == "vllm" else {}
        return {"id": self.model, "object": "model", "created": CREATED, "owned_by": self.accent, **limit}

    def _info(self) -> dict[str, Any]:
        return {
            "model_id": self.model,
            "model_sha": "fca14538aa9956a46526bd1d0d11d69e19b5a101",
            "model_dtype": "float16",
            "model_type": {"embedding": {"pooling": "cls"}},
            "max_concurrent_requests": 512,
            "max_input_length": self.max_tokens,
            "max_batch_tokens": 16384,
            "max_client_batch_size": self.max_batch,
            "auto_truncate": self.auto_truncate,
            "tokenization_workers": 4,
            "version": "1.8.0",
        }

    def _embeddings(self, body: dict[str, Any], flaw: Failure | None) -> Reply:
        content = body.get("input", [])
        texts = [content] if isinstance(content, str) else list(content)
        refused = self._refused(body, texts)
        if refused is not None:
            return refused
        read = [beginning(text, self.max_tokens) if count_tokens(text) > self.max_tokens else text for text in texts]
        vectors = flawed([self._vector(text)[: body.get("dimensions")] for text in read], flaw)
        form = "base64" if self.base64 or body.get("encoding_format") == "base64" else self.as_text
        rows = [
            {"object": "embedding", "embedding": _formed(vector, form), **self._indexed(number)}
            for number, vector in enumerate(vectors)
        ]
        if self.index in ("null", "missing"):
            rows.reverse()  # without an index the order of the list counts
        tokens = sum(map(count_tokens, read))
        return Reply(
            body={
                "object": "list",
                "data": rows[::-1],  # the protocol promises `index`, not an order
                "model": self.model,
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            }
        )

    def _indexed(self, number: int) -> dict[str, Any]:
        """Return the field ``index`` of a row."""
        forms: dict[str, Any] = {"from 1": number + 1, "text": str(number), "null": None}
        if self.index == "missing" or (self.index == "without 0" and number == 0):
            return {}
        return {"index": forms.get(self.index, number)}

    def _vector(self, text: str) -> list[float]:
        """Compute the vector of a text by the model of this ``seed``."""
        vector = hashed_embedding(" ".join(self.seed + token for token in tokens_of(text)), self.dimension)
        return [number + self.noise * (-1) ** place for place, number in enumerate(vector)]

    def _chat(self, body: dict[str, Any]) -> Reply:
        if body.get("model") != self.model:
            return self._refuse(404, f"The model `{body.get('model')}` does not exist.")
        form = (body.get("response_format") or {}).get("json_schema")
        if form and not self.takes_schemas:
            return self._refuse(self.refuses_schemas_with, "response_format is not supported")
        prompt = body["messages"][-1]["content"]
        answer: Any = json.dumps(example_of(form["schema"])) if form else f"You said: {prompt}"
        if self.answers:
            answer = self.answers.popleft()
        choice = answer if isinstance(answer, dict) else {"message": {"content": answer}}
        message: dict[str, Any] = {"role": "assistant", **choice.get("message", {})}
        words, limit = [], body.get("max_completion_tokens") or body.get("max_tokens") or 1_000
        if isinstance(message.get("content"), str):
            words = message["content"].split(" ")
            message["content"] = self._content(" ".join(words[:limit]))
        reason = choice.get("finish_reason", "length" if len(words) > limit else "stop")
        tokens = {"prompt_tokens": len(tokens_of(prompt)), "completion_tokens": min(limit, len(words))}
        usage = {**tokens, "total_tokens": sum(tokens.values())}
        head: dict[str, Any] = {"id": "chatcmpl-1", "created": CREATED, "model": self.model}
        whole = {
            **head,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": usage,
        }
        if not body.get("stream") or self.streams == "body":
            return Reply(body=whole, indented=bool(body.get("stream")))
        pieces = [word if place == 0 else f" {word}" for place, word in enumerate(words[:limit])]
        name = "message" if self.streams == "messages" else "delta"
        begin = {**message, "content": ""} if pieces else message
        deltas: list[Any] = [begin, *({"content": self._content(piece)} for piece in pieces)]
        choices = [{"index": 0, name: delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": reason})
        if self.streams == "both":
            choices[-1]["message"] = message
        head["object"] = "chat.completion.chunk"
        lines: list[Any] = [{**head, "choices": [choice]} for choice in choices]
        if (body.get("stream_options") or {}).get("include_usage"):
            lines.append({**head, "choices": [], "usage": usage})
        return Reply(lines=self._paced(lines), events=True)

    def _content(self, text: str) -> Any:
        return [{"type": "text", "text": text}] if self.parts else text

    def _paced(self, lines: Sequence[Any]) -> Iterator[Any]:
        for line in lines:
            time.sleep(self.pace)
            self.streamed += 1
            yield line

    def _refused(self, body: dict[str, Any], texts: Sequence[str]) -> Reply | None:
        longest = max(map(count_tokens, texts), default=0)
        if self.accent == "vllm" and body.get("model") != self.model:
            return self._refuse(404, f"The model `{body.get('model')}` does not exist.")
        if self.accent == "tei" and len(texts) > self.max_batch:
            return self._refuse(413, f"batch size {len(texts)} > maximum allowed batch size {self.max_batch}")
        if longest <= self.max_tokens or self.auto_truncate:
            return None
        if self.accent == "tei":
            return self._refuse(413, f"`inputs` must have less than {self.max_tokens} tokens. Given: {longest}")
        if self.accent == "vllm":
            return self._refuse(
                400,
                f"This model's maximum context length is {self.max_tokens} tokens. However, you requested {longest} "
                "tokens in the input for embedding generation. Please reduce the length of the input.",
            )
        return self._refuse(500, "input is too large to process. increase the physical batch size")

    def _refuse(self, status: int, reason: str) -> Reply:
        return Reply(status, self.refusal(status, reason))

    def _rerank(self, query: str, texts: Sequence[str], flaw: Failure | None) -> Reply:
        if len(texts) > self.max_batch:
            reason = f"batch size {len(texts)} > maximum allowed batch size {self.max_batch}"
            return Reply(413, {"error": reason, "error_type": "Validation"})
        rows = [{**self._indexed(number), "score": score} for number, score in enumerate(_overlaps(query, texts))]
        return Reply(body=sorted(rows[: -1 if flaw == "short" else None], key=lambda row: -row["score"]))


def _formed(vector: list[Any], form: str) -> Any:
    if form == "base64":
        return b64encode(pack(f"<{len(vector)}f", *vector)).decode()
    texts = [str(number) for number in vector]
    return {"numbers": texts, "vector": f"[{', '.join(texts)}]"}.get(form, vector)


def _overlaps(query: str, texts: Sequence[str]) -> list[float]:
    """Compute the share of the query's words in each text."""
    wanted = set(tokens_of(query))
    return [len(wanted & set(tokens_of(text))) / len(wanted) for text in texts]


def _tokenized(text: str) -> list[dict[str, Any]]:
    words = ["[CLS]", *tokens_of(text), "[SEP]"]
    return [{"id": i, "text": word, "special": word in ("[CLS]", "[SEP]")} for i, word in enumerate(words)]
