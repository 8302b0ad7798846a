"""What a technique is made of: its code, its configuration, and what it keeps."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict

from ragistry.embedders.tei_reranker import TEIReranker
from ragistry.errors import ModelConnectionError
from ragistry.evaluation.identity import LARGEST, Description, settings_of
from ragistry.evaluation.own_code import code_of
from ragistry.ollama.client import OllamaClient
from ragistry.ollama.generator import OllamaGenerator
from ragistry.pipelines import PipelineBuilder
from ragistry.techniques.mmr import MMRTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.openai_server import OpenAIServer
from ragistry.types import Document


class Judge:
    """Scores texts; has no name that tells it from another."""

    def __init__(self, floor: float) -> None:
        self.floor = floor

    def rerank(self, query: str, texts: list[str]) -> list[float]:
        return [self.floor for _ in texts]


class Named(Judge):
    model = "small"


class Both(Judge):
    """A technique, although it can also rerank."""

    model = "small"

    def retrieve(self, query: str, **_: object) -> list[Document]:
        return [Document("", {}, self.floor, "d0")]


class Open(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    words: set[str] = set()
    made: date | None = None
    odd: Any = None


class Plain:
    """Keeps a configuration, and whatever else it is given."""

    def __init__(self, config: dict[str, Any], **kept: Any) -> None:
        self.config = config
        vars(self).update(kept)

    def retrieve(self, query: str, **_: object) -> list[Document]:
        return [Document("", {}, 1.0, str(self.config))]


class Slotted(Plain):
    __slots__ = ("hidden",)


@dataclass
class Weights:
    dense: float


def helper() -> None:
    """Stands in a module under its name."""


def described(made: Any, **given: Any) -> tuple[dict[str, Any], list[str]]:
    description = Description(given)
    found = description.of(made)
    json.dumps(found, allow_nan=False)
    return found, description.unknown


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., type]]:
    """Write modules, and give the class ``Mine`` of one of them."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def write(name: str, /, **texts: str) -> type:
        for module, text in texts.items():
            path = tmp_path.joinpath(*module.split("__dot__")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return import_module(name).Mine

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_other_code_has_another_hash(written: Callable, tmp_path: Path) -> None:
    mine = written("mine_a", mine_a="class Mine: pass\n")
    before = code_of(mine)
    assert before == code_of(mine)
    (tmp_path / "mine_a.py").write_text("class Mine: limit = 1\n")
    assert code_of(mine) != before


def test_what_a_module_imports_of_its_folder_counts_and_its_neighbours_do_not(
    written: Callable, tmp_path: Path
) -> None:
    mine = written(
        "mine_b", mine_b="import json\nfrom words import split\nclass Mine: pass\n", words="split = 1\n", other=""
    )
    before = code_of(mine)
    (tmp_path / "other.py").write_text("changed = 1\n")
    assert code_of(mine) == before
    (tmp_path / "words.py").write_text("split = 2\n")
    assert code_of(mine) != before


def test_the_rest_of_its_package_counts_as_far_as_it_is_imported(written: Callable, tmp_path: Path) -> None:
    texts = {
        "pack__dot____init__": "",
        "pack__dot__deep__dot____init__": "",
        "pack__dot__deep__dot__mine": "def late():\n    from ..words import split\nclass Mine: pass\n",
        "pack__dot__words": "import typing\nif typing.TYPE_CHECKING:\n    import pack.types_only\nsplit = 1\n",
        "pack__dot__types_only": "",
    }
    mine = written("pack.deep.mine", **texts)
    before = code_of(mine)
    (tmp_path / "pack" / "types_only.py").write_text("changed = 1\n")
    assert code_of(mine) == before
    (tmp_path / "pack" / "words.py").write_text("split = 2\n")
    assert code_of(mine) != before


def test_the_code_of_a_base_class_counts(written: Callable, tmp_path: Path) -> None:
    mine = written(
        "above.mine",
        above__dot____init__="",
        above__dot__mine="import importlib\nBase = importlib.import_module('beside').Base\nclass Mine(Base): pass\n",
        beside="class Base: pass\n",
    )
    before = code_of(mine)
    (tmp_path / "beside.py").write_text("class Base: limit = 1\n")
    assert code_of(mine) != before


def test_a_module_that_is_run_counts_with_what_it_imports_of_its_package(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").touch()
    (tmp_path / "pack" / "bench.py").write_text(
        "from ragistry.evaluation.own_code import code_of\nfrom .words import split\n"
        "class Mine: pass\nprint(code_of(Mine))\n"
    )

    def hashed(words: str) -> str:
        (tmp_path / "pack" / "words.py").write_text(words)
        command = [sys.executable, "-B", "-m", "pack.bench"]
        return subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=True, timeout=60).stdout

    before = hashed("split = 1\n")
    assert len(before.strip()) == 64
    assert hashed("split = 1\n") == before
    assert hashed("split = 2\n") != before


def test_of_the_bases_that_another_installed_package_has_its_own_file_counts_alone(
    written: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    foreign = tmp_path / "site-packages" / "foreign"
    foreign.mkdir(parents=True)
    (foreign / "__init__.py").touch()
    (foreign / "above.py").write_text("from foreign import words\nclass Base: pass\n")
    (foreign / "words.py").touch()
    mine = written("mine_c", mine_c="from foreign.above import Base\nclass Mine(Base): pass\n")
    before, of_base = code_of(mine), code_of(mine.__mro__[1])
    (foreign / "words.py").write_text("changed = 1\n")
    assert code_of(mine) == before
    assert code_of(mine.__mro__[1]) != of_base, "of a class of that package itself the package counts"
    (foreign / "above.py").write_text("class Base: limit = 1\n")
    assert code_of(mine) != before


def test_a_file_that_is_no_python_counts_with_no_imports(written: Callable, tmp_path: Path) -> None:
    mine = written("mine_d", mine_d="try:\n    import broken\nexcept SyntaxError: pass\nclass Mine: pass\n", broken="(")
    before = code_of(mine)
    (tmp_path / "broken.py").write_text("((")
    assert None is not code_of(mine) != before


def test_a_long_chain_of_imports_is_followed_to_its_end(written: Callable, tmp_path: Path) -> None:
    chain = {f"chain_{at}": f"def late():\n    import chain_{at + 1}\n" for at in range(1_200)}
    mine = written("mine_e", mine_e="def late():\n    import chain_0\nclass Mine: pass\n", **chain, chain_1200="")
    before = code_of(mine)
    (tmp_path / "chain_1200.py").write_text("changed = 1\n")
    assert code_of(mine) != before


def test_what_was_typed_at_a_prompt_has_no_code() -> None:
    typed: dict[str, Any] = {"__name__": "prompt"}
    exec("class Mine: pass", typed)
    assert code_of(typed["Mine"]) is None
    assert described(typed["Mine"]())[1] == ["the code of Mine"]


def test_a_configuration_that_is_a_mapping_or_a_model_is_read() -> None:
    found, unknown = described(Plain({"first": "d0"}))
    assert (found["config"], unknown) == ({"first": "d0"}, [])
    assert found["use"] == "tests.evaluation.test_identity:Plain"
    naive = NaiveRAGTechnique({"top_k": 3}, store=(store := SimpleNamespace()), embedder=(model := SimpleNamespace()))
    found, unknown = described(naive, store=store, embedder=model)
    assert found["config"]["top_k"] == 3
    assert unknown == []
    assert found["state"]["store"] == "the store of the comparison"


def test_what_an_object_keeps_is_part_of_it() -> None:
    found, unknown = described(
        Plain({}, k=1, weights=Weights(0.5), folder=Path("x"), split=helper, inner=Plain({"a": 1}))
    )
    assert unknown == []
    assert found["state"]["k"] == 1
    assert found["state"]["weights"]["state"] == {"dense": 0.5}
    assert found["state"]["inner"]["config"] == {"a": 1}
    slotted = Slotted({})
    slotted.hidden = 2
    assert described(slotted)[0]["state"] == {"hidden": 2}


def test_what_nothing_is_known_of_is_named() -> None:
    assert described(Plain({}, rank=lambda _: 1))[1] == ["rank, a function"]
    assert described(Plain({}, inner=Plain({}, made=object())))[1] == ["inner.made, a object"]
    assert described(Plain({"size": iter([1, 2])}))[1] == ["config.size, a list_iterator"]


def test_a_value_of_a_model_that_is_none_of_json_is_named_and_the_others_are_read() -> None:
    found, unknown = described(Plain({}, options=Open(words={"b", "a"}, made=date(2024, 1, 2), odd=object())))
    assert found["state"]["options"] == {"words": ["a", "b"], "made": "2024-01-02", "odd": "unknown object"}
    assert unknown == ["options.odd, a object"]


def test_a_set_is_written_in_the_same_order_by_every_process() -> None:
    code = "from ragistry.evaluation.identity import Description as D; print(D().plain({'w': set('abcdefgh')}))"
    said = {
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, text=True,
                       capture_output=True, check=True, timeout=60).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert said == {"{'w': ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']}\n"}


@pytest.mark.parametrize(
    "values",
    [
        (re.compile("tea"), re.compile("coffee"), re.compile("tea", re.IGNORECASE), re.compile(b"tea")),
        (np.arange(4), np.arange(4) + 1, np.arange(4.0), np.arange(4).reshape(2, 2), np.float32(0.5), np.float32(0.6)),
    ],
)
def test_patterns_and_arrays_are_told_by_what_they_hold(values: tuple[Any, ...]) -> None:
    found = [described(Plain({}, kept=value)) for value in values]
    assert {len(unknown) for _, unknown in found} == {0}
    assert len({json.dumps(told) for told, _ in found}) == len(values)
    assert described(Plain({}, kept=copy.deepcopy(values[0]))) == found[0]
    assert described(Plain({}, kept=np.array([object()])))[1] == ["kept, a ndarray"]


def test_a_list_that_contains_itself_is_not_known() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    found, unknown = described(Plain({}, ring=ring, twice=[ring[:1]] * 2))
    assert found["state"] == {"ring": [1, "unknown list"], "twice": [[1], [1]]}
    assert unknown == ["ring[1], a list"]


def test_what_reranks_is_told_by_what_it_keeps_unless_it_has_a_name() -> None:
    found, unknown = described(Plain({}, judge=Judge(0.5)))
    assert unknown == []
    assert found["state"]["judge"]["state"] == {"floor": 0.5}
    assert found["state"]["judge"]["code"] == code_of(Judge)
    assert found != described(Plain({}, judge=Judge(0.6)))[0]
    named = described(Plain({}, judge=Named(0.5)))[0]["state"]["judge"]
    assert (named["model"], named["code"]) == ("small", code_of(Named))
    ollama = [OllamaGenerator("small", system=said) for said in ("Be brief.", "Be kind.")]
    one, other = (described(Plain({}, generator=each)) for each in ollama)
    assert (one[1], other[1]) == ([], [])
    assert one[0] != other[0]
    for each in ollama:
        each.close()
    assert described(Plain({}, inner=Both(0.5)))[0]["state"]["inner"]["state"] == {"floor": 0.5}


def test_models_of_one_class_are_told_by_their_address_and_settings() -> None:
    def reranker(url: str, **options: Any) -> TEIReranker:
        return TEIReranker(base_url=url, **options)

    def generator(model: str, host: str, **options: Any) -> OllamaGenerator:
        return OllamaGenerator(model, OllamaClient(host), **options)

    models = [
        reranker("http://one:80"), reranker("http://two:80"), reranker("http://one:80", batch_size=8),
        generator("small", "one"), generator("large", "one"), generator("small", "two"),
        generator("small", "one", system="Be brief."),
    ]  # fmt: skip
    found = [json.dumps(settings_of(model)) for model in models]
    again = reranker("http://me:secret@one:80/v1", api_key="secret")
    assert len(set(found)) == len(found)
    assert json.dumps(settings_of(again)) == found[0], "how one is let in decides no score"
    kept, unknown = described(Plain({}, judge=models[0]))
    assert unknown == []
    assert kept["state"]["judge"]["state"]["_server"] == {"at": "http://one:80"}
    for model in (*models, again):
        model.close()


def test_another_model_behind_the_same_address_is_another() -> None:
    with OpenAIServer("small/reranker") as server:
        reranker = TEIReranker(base_url=server.url, backoff=0.001)
        one = settings_of(reranker)
        server.model = "large/reranker"
        other = settings_of(reranker)
    assert (one["_server"]["model"], other["_server"]["model"]) == ("small/reranker", "large/reranker")
    assert one["_server"]["at"] == other["_server"]["at"] == server.url
    assert settings_of(reranker)["_server"] == {"at": server.url}, "nobody is there any more"
    reranker.close()


def test_a_model_that_was_pulled_anew_under_its_name_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with OllamaServer() as server:
        client = OllamaClient(server.url)
        generator = OllamaGenerator("llama3.2", client)
        one, kept = settings_of(generator), described(Plain({}, generator=generator))[0]
        assert one == settings_of(generator)
        assert one["digest"] == client.digest("llama3.2")
        monkeypatch.setattr(server, "digest", lambda name: "f" * 64)
        assert settings_of(generator) == one | {"digest": "f" * 64}
        assert described(Plain({}, generator=generator))[0] != kept
        assert settings_of(OllamaGenerator("absent", client)).keys() == one.keys() - {"digest"}
    assert settings_of(generator).keys() == one.keys() - {"digest"}, "nobody is there any more"
    client.close()


@pytest.mark.parametrize("password", ["plain", "with@one", "with%40one"])
def test_what_lets_somebody_in_is_in_no_description(password: str) -> None:
    address = f"http://me:{password}@one:80"
    reranker = TEIReranker(base_url=address)
    assert settings_of(reranker)["_server"] == {"at": "http://one:80"}
    reranker.close()
    made = Plain({"api_key": "sk-1"}, _api_key="sk-1", password="sk-1", headers={"Authorization": "sk-1"}, url=address)
    kept, unknown = described(made)
    assert unknown == []
    assert "sk-1" not in json.dumps(kept)
    assert kept["state"]["url"] == "http://one:80"
    assert described(Plain({}, max_tokens=5, key="title"))[0]["state"] == {"max_tokens": 5, "key": "title"}


def test_a_model_is_told_by_its_name_unless_it_cannot_be_reached() -> None:
    class Model:
        model = "small"

        def generate(self, prompt: str, *, schema: Any = None) -> str:
            return prompt

    class Down:
        def embed(self, texts: object, *, role: str = "document") -> None: ...

        @property
        def fingerprint(self) -> None:
            raise ModelConnectionError("down")

    assert described(Plain({}, generator=Model()))[0]["state"]["generator"]["model"] == "small"
    assert described(Plain({}, embedder=Down()))[1] == ["embedder, a Down"]


def test_a_class_that_takes_from_the_function_around_it_is_not_known() -> None:
    def make(first: str) -> Any:
        class Local(Plain):
            def retrieve(self, query: str, **_: object) -> list[Document]:
                return [Document("", {}, 1.0, first)]

        return Local({})

    assert described(make("d0"))[1] == ["the code of Local"]


def test_a_pipeline_is_described_by_its_steps() -> None:
    def built(first: str, top_k: int) -> Any:
        return PipelineBuilder("p").step("find", Plain({"first": first}), top_k=top_k).build()

    found, unknown = described(built("d0", 5))
    assert unknown == []
    assert found["steps"]["find"]["state"]["technique"]["config"] == {"first": "d0"}
    assert found != described(built("d3", 5))[0]
    assert found != described(built("d0", 6))[0]
    _, unknown = described(PipelineBuilder("p").step("find", Plain({}, rank=lambda _: 1)).build())
    assert unknown == ["find.technique.rank, a function"]


def test_what_is_large_is_kept_as_a_hash_and_what_refers_to_itself_ends() -> None:
    large = Plain({}, words=["word"] * LARGEST)
    assert set(described(large)[0]["state"]["words"]) == {"sha256"}
    ring = Plain({})
    ring.base = ring  # type: ignore[attr-defined]
    assert described(ring)[0]["state"]["base"]["again"] == 1


def test_techniques_of_the_package_are_known_as_far_as_what_they_are_given() -> None:
    store, model = SimpleNamespace(), SimpleNamespace()
    naive = NaiveRAGTechnique({}, store=store, embedder=model)
    mmr = MMRTechnique({}, base=naive, store=store, embedder=model)
    assert described(mmr, store=store, embedder=model)[1] == []
    assert described(mmr)[1] == ["base.store, a SimpleNamespace", "base.embedder, a SimpleNamespace",
                                 "store, a SimpleNamespace", "embedder, a SimpleNamespace"]  # fmt: skip
