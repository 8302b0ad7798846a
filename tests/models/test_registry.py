"""models.yaml: names become generators and rerankers, and everything that is wrong is reported when it is loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ragistry.config.models import read_models
from ragistry.errors import ConfigError, InvalidConfigError
from ragistry.models.maxsim import MaxSimReranker
from ragistry.models.openai import OpenAIGenerator, OpenAIReranker
from ragistry.models.registry import EmbedderSettings, Models, choose_embedder, chunking_of, provider_of
from ragistry.models.tei import TEIReranker
from ragistry.ollama.generator import OllamaGenerator
from ragistry.plugins import Offer
from tests.messages import refused

KEY = "sk-very-secret"
OWN = """
class Echo:
    def __init__(self, times: int = 1, *, ollama_host=None):
        self.times, self.host = times, ollama_host

    def generate(self, prompt, *, schema=None):
        return prompt * self.times


class Mute:
    pass


def shout(prompt, times: int = 1):
    return prompt.upper() * times


def lengths(query, texts, ollama_host=None):
    return [len(text) for text in texts]


def nothing():
    pass
"""


LETTERS = """
from dataclasses import replace
from examples.own_embedder import LetterEmbedder


class Letters(LetterEmbedder):
    def __init__(self, model, *, folder=None):
        assert folder is not None
        self.fingerprint = replace(LetterEmbedder.fingerprint, model=model)
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config").mkdir()
    (tmp_path / "own_models.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_models", raising=False)
    return tmp_path


def load(root: Path, text: str, environ: dict[str, str] | None = None) -> Models:
    (root / "config" / "models.yaml").write_text(text, encoding="utf-8")
    return Models(read_models(root, environ or {}), ollama_host="http://gpu:11434")


def test_without_a_file_there_are_no_models(root: Path) -> None:
    models = Models(read_models(root))
    assert (dict(models.generators), models.generators.default) == ({}, None)


def test_without_a_file_maxsim_reranks(root: Path) -> None:
    models = Models(read_models(root))
    assert isinstance(models.rerankers[models.rerankers.default or ""], MaxSimReranker)


def test_every_use_gives_its_class(root: Path) -> None:
    models = load(
        root,
        """
generators:
  writer: {use: ollama, model: "qwen3:4b", system: Be brief., max_tokens: 100, options: {top_k: 3}}
  hosted: {use: openai, url: "https://llm.example.org/v1", model: m, api_key: "${LLM_API_KEY}", timeout: 60}
  own: {use: "own_models:Echo", times: "${TIMES}"}
rerankers:
  tei: {use: tei, url: "http://127.0.0.1:8081"}
  other: {use: openai, url: "http://127.0.0.1:8082", model: m}
""",
        {"LLM_API_KEY": f"{KEY}\n", "TIMES": "2"},
    )
    kinds = [type(model) for model in (*models.generators.values(), *models.rerankers.values())]
    assert kinds[:2] + kinds[3:] == [OllamaGenerator, OpenAIGenerator, TEIReranker, OpenAIReranker]
    assert models.generators["own"].generate("ab") == "abab"
    assert models.generators["own"].host == "http://gpu:11434"  # type: ignore[attr-defined]
    assert models.generators["own"] is models.generators["own"]
    models.close()


def test_a_function_is_a_model_with_the_other_keys_as_its_arguments(root: Path) -> None:
    entries = "generators: {a: {use: 'own_models:shout'}, b: {use: 'own_models:shout', times: 2}}\n"
    models = load(root, entries + "rerankers: {c: {use: 'own_models:lengths'}}\n")
    assert [models.generators[name].generate("x") for name in "ab"] == ["X", "XX"]
    assert models.rerankers["c"].rerank("q", ["four"]) == [4]


@pytest.mark.parametrize(
    ("names", "default"), [(["a"], "a"), (["a", "b"], None), (["a", "default"], "default"), ([], None)]
)
def test_the_default_is_the_only_one_or_the_one_of_that_name(root: Path, names: list[str], default: str | None) -> None:
    models = load(root, "generators:\n" + "".join(f"  {name}: {{use: ollama, model: m}}\n" for name in names))
    assert models.generators.default == default


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("generator: {}", r"models.yaml:1: generator: unknown setting 'generator'; did you mean 'generators'\?"),
        ("generators: [a]", "models.yaml:1: generators: .*mapping.*got a list of 1"),
        ("generators:\n  a: {model: m}", "models.yaml:2: generators.a.use: is missing"),
        ("generators:\n  a: {use: olama, model: m}", "yaml:2: .*unknown generator 'olama'; did you mean 'ollama'"),
        ("generators:\n  a: {use: ollama}", "models.yaml:2: generators.a.model: is missing"),
        ("generators:\n  a:\n    use: ollama\n    modle: m", r":4: .*unknown setting 'modle'; did you mean 'model'"),
        ("generators:\n  a: {use: ollama, model: m, timeout: 0}", "generators.a.timeout: .*more than 0, got 0"),
        ("generators:\n  a: {use: ollama, model: m, temperature: true}", "temperature: must be a number, got True"),
        ("generators:\n  a: {use: openai, model: m, url: 'host:80'}", "'host:80' has no scheme; write http://"),
        ("rerankers:\n  a: {use: tei}", "rerankers.a.url: is missing"),
        ("generators:\n  a: {use: 'own_models:Echo', times: many}", "generators.a.times: .*whole number.*got 'many'"),
        ("generators:\n  a: {use: 'own_models:Echo', tims: 1}", r"unknown setting 'tims'; did you mean 'times'\?"),
        ("generators:\n  a: {use: 'own_models:Ecko'}", r"no 'Ecko'; did you mean 'Echo'\?"),
        ("generators:\n  a: {use: 'own_models:Mute'}", "'own_models:Mute' is not a generator; it has no method gen"),
        ("generators:\n  a: {use: 'own_models:shout', times: many}", "generators.a.times: .*whole number.*got 'many'"),
        ("generators:\n  a: {use: 'own_models:shout', prompt: x}", "unknown setting 'prompt'"),
        ("rerankers:\n  a: {use: 'own_models:lengths', texts: [x]}", "unknown setting 'texts'"),
        ("rerankers:\n  a: {use: 'own_models:Echo'}", "is not a reranker; it has no method rerank"),
        ("generators:\n  a: {use: ollama, model: '${NO_SUCH}'}", "models.yaml:2: generators.a.model: the environment "
         "variable 'NO_SUCH' is not set"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_reported_with_its_line(root: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidConfigError, match=said):
        load(root, text)


def test_function_with_the_wrong_arguments_is_refused_when_it_is_used(root: Path) -> None:
    models = load(root, "generators: {a: {use: 'own_models:nothing'}}\n")
    with pytest.raises(InvalidConfigError, match="models.yaml:1: generators.a: nothing.. is not a generator"):
        models.generators["a"]


def test_every_problem_is_reported_at_once(root: Path) -> None:
    text = (
        "generators:\n  a: {use: olama}\n  b: {use: ollama}\nrerankers:\n  c: {use: tei}\n  d: {use: tei, url: '${NO}'}"
    )
    with refused(InvalidConfigError) as raised:
        load(root, text)
    lines = [line.split(": ")[0].rpartition(":")[2] for line in str(raised.value).split("\n")[1:]]
    assert lines == ["2", "3", "5", "6"]


@pytest.mark.parametrize("field", ["temperature", "timeout", "use", "url", "api_key", "nothing"])
def test_a_key_of_the_environment_is_never_shown(root: Path, field: str) -> None:
    entry = {"use": "openai", "model": "m", "url": "http://host", field: "${LLM_API_KEY}"}
    with pytest.raises(InvalidConfigError) as raised:
        load(root, f"generators:\n  a: {entry}", {"LLM_API_KEY": f"{KEY}\nä" if field == "api_key" else KEY})
    assert KEY not in str(raised.value)


def test_a_key_in_the_file_is_not_shown_either(root: Path) -> None:
    with refused(InvalidConfigError):
        load(root, "generators:\n  a: {use: openai, model: m, url: 'http://h', api_key: 123456}")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nomic-embed-txt", r"unknown embed_model 'nomic-embed-txt'; did you mean 'nomic-embed-text'\?"),
        ("tei", "needs the server's address; set embed_url"),
        ("openai", "needs the server's address"),
        ("folder", "needs a model; write folder:MODEL"),
        ("ollama:", "needs a model; write ollama:MODEL"),
        ("minilm:v2", "has only one model; write minilm"),
        ("foldr:./mine", r"unknown embed_model 'foldr:./mine'; did you mean 'folder'\?"),
        ("fastembed:BAAI/bge-small-en-v1.5", "unknown embed_model 'fastembed:BAAI/bge-small-en-v1.5'; use folder"),
        ("hf:intfloat/e5-small-v2", "unknown embed_model"),
        ("sentence-transformers:all-MiniLM-L6-v2", "unknown embed_model"),
        ("./models/mine", "a folder is written 'folder:./models/mine'"),
        (r"C:\\models", "a folder is written"),
    ],
)
def test_an_embed_model_that_cannot_be_made_is_an_error(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        choose_embedder(name)


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("minilm", ("minilm", "")),
        ("folder:./mine", ("folder", "./mine")),
        (r"folder:C:\\models\\mine", ("folder", r"C:\\models\\mine")),
        ("openai:BAAI/bge-m3", ("openai", "BAAI/bge-m3")),
        ("nomic-embed-text", ("ollama", "nomic-embed-text")),
        ("nomic-embed-text:v1.5", ("ollama", "nomic-embed-text:v1.5")),
        ("owner/bge-m3:latest", ("ollama", "owner/bge-m3:latest")),
        ("ollama:hf.co/owner/model-GGUF:Q4_K_M", ("ollama", "hf.co/owner/model-GGUF:Q4_K_M")),
        ("own_models:Echo", ("", "own_models:Echo")),
        ("package.module:make", ("", "package.module:make")),
    ],
)
def test_every_name_has_its_provider(name: str, provider: tuple[str, str]) -> None:
    assert provider_of(name) == provider


def test_an_installed_package_adds_an_embedder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "letters.py").write_text(LETTERS, encoding="utf-8")
    offered = {"letters": Offer("letters", "letters:Letters", "letters")}
    monkeypatch.setattr("ragistry.plugins.offers", lambda _: offered)
    monkeypatch.setattr("ragistry.models.registry.offers", lambda _: offered)
    embedder = choose_embedder("letters:wide", EmbedderSettings(folder=root))
    assert (embedder.fingerprint.model, embedder.embed(["tea"]).shape) == ("wide", (1, 512))


@pytest.mark.parametrize(
    ("name", "chunking"),
    [
        ("minilm", (1000, 150)),
        ("ollama:nomic-embed-text", (1500, 200)),
        ("multilingual", (1500, 200)),
        ("x", (1000, 150)),
    ],
)
def test_chunks_suit_the_model(name: str, chunking: tuple[int, int]) -> None:
    assert chunking_of(name) == chunking
