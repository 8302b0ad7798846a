"""What a technique is made of: its code, its configuration, and what it keeps."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ragistry.errors import ModelConnectionError
from ragistry.evaluation.identity import LARGEST, Description
from ragistry.evaluation.own_code import code_of
from ragistry.pipelines import PipelineBuilder
from ragistry.techniques.mmr import MMRTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.types import Document


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
    assert described(Plain({"size": {1, 2}}))[1] == ["config.size, a set"]


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

    assert described(Plain({}, generator=Model()))[0]["state"]["generator"] == {"model": "small"}
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
