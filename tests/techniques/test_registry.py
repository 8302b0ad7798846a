"""techniques.yaml: what it may contain, how all of its mistakes are reported at once, and what techniques get."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from ragistry.config.settings import DEFAULTS
from ragistry.config.yaml_file import read_yaml
from ragistry.errors import (
    ConfigError,
    EmptyQueryError,
    InvalidConfigError,
    InvalidFilterError,
    InvalidLimitError,
    TechniqueError,
    UnknownTechniqueError,
)
from ragistry.techniques.classes import find_class, wanted_resources
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.testing.techniques import TechniqueConformance
from ragistry.types import Document, EmbeddedChunk, StageScore, ranked
from tests.messages import refused
from tests.techniques.doubles import Ready, ids, scored, traced

HERE = "tests.techniques.plugins"


def load(tmp_path: Path, text: str, **resources: object) -> TechniqueRegistry:
    path = tmp_path / "techniques.yaml"
    path.write_text(text.replace("HERE", HERE), encoding="utf-8")
    return TechniqueRegistry.load(path, resources)


def contents(registry: TechniqueRegistry, name: str, query: str = "q") -> list[str]:
    return [document.content for document in registry.get(name).retrieve(query)]


# What techniques are made of


def test_user_technique_is_a_class_and_one_entry(tmp_path):
    text = """techniques:
  echo: {use: "HERE:Echo", color: red}
  shout: {use: "HERE:Shout", base: echo}
  fixed: {use: "HERE:Fixed", texts: [x]}
  both: {use: "HERE:Joined", bases: [echo, fixed]}
"""
    registry = load(tmp_path, text)
    assert registry.names() == ["echo", "shout", "fixed", "both"]
    assert contents(registry, "shout", "hello") == ["HELLO"]
    assert registry.get("echo") is registry.get("echo"), "built once"
    documents = registry.get("both").retrieve("q")
    assert [(one.content, one.metadata) for one in documents] == [("q", {"color": "red"}), ("x", {"collection": "a"})]
    with refused(UnknownTechniqueError, "'shuot'", "'shout'"):
        registry.get("shuot")


class Depth:
    """Takes its settings as a model."""

    class Config(BaseModel):
        depth: int = 3
        way: Literal["up", "down"] = Field(default="down", alias="from")

    def __init__(self, config: Config, *, base):
        self.config, self.base = config, base

    def retrieve(self, query, **options):
        return [Document(f"{self.config.depth} {self.config.way}", {}, 1.0, id=str(one)) for one in range(3)]


class Mapped(Depth):
    """Takes its model for a mapping."""

    def __init__(self, config, *, base):
        self.config, self.base = self.Config(**config), base


class Inherited(Depth):
    """Has more settings."""

    class Config(Depth.Config):
        depth: int = 4


class Plain:
    """Has no model, so that its settings are a dict."""

    def __init__(self, config, *, base):
        self.said = f"{config['depth']} {config.get('from', 'down')}"

    def retrieve(self, query, **options):
        return [Document(self.said, {}, 1.0)]


@pytest.mark.parametrize(
    ("cls", "settings", "expected"),
    [
        (Depth, {}, "3 down"),
        (Depth, {"depth": 5, "from": "up"}, "5 up"),
        (Inherited, {"from": "up"}, "4 up"),
    ],
)
def test_config_of_a_class_reaches_its_constructor_as_a_model_with_defaults(tmp_path, cls, settings, expected):
    registry = load(tmp_path, 'techniques: {echo: {use: "HERE:Echo"}}')
    made = registry.build({"use": cls, "base": "echo", **settings})
    assert type(made.technique.config) is cls.Config
    assert made.retrieve("q")[0].content == expected


@pytest.mark.parametrize(("cls", "passes"), [(Depth, True), (Plain, True), (Mapped, False)])
def test_technique_that_takes_its_model_for_a_mapping_is_refused_by_the_registry_and_the_suite(tmp_path, cls, passes):
    registry = load(tmp_path, 'techniques: {echo: {use: "HERE:Echo"}}')
    made = cls(Depth.Config() if cls is Depth else {"depth": 1}, base=Ready())
    suite = TechniqueConformance()
    if passes:
        assert registry.build({"use": cls, "base": "echo", "depth": 5}).retrieve("q")
        suite.test_takes_its_config_as_the_registry_gives_it(made)
    else:
        with pytest.raises(TypeError) as caught:
            registry.build({"use": cls, "base": "echo"})
        assert "config.NAME" in caught.value.__notes__[0]
        with pytest.raises(pytest.fail.Exception):
            suite.test_takes_its_config_as_the_registry_gives_it(made)


def test_resources_are_passed_by_parameter_name(tmp_path):
    text = """techniques:
  e: {use: "HERE:Echo"}
  g: {use: "HERE:NeedsGenerator"}
  all: {use: "HERE:Everything", base: e, bases: [e, e]}
"""
    registry = load(tmp_path, text, generator=str.title, store="s")
    assert contents(registry, "g", "a b") == ["A B"]
    assert contents(registry, "all") == ["base bases generator registry store"]
    assert registry.get("all").technique.resources["store"] == "s"


NAMED = """techniques:
  loud: {use: "HERE:NeedsGenerator", generator: upper}
  default: {use: "HERE:NeedsGenerator"}
"""
GENERATORS = {"upper": str.upper, "title": str.title}


def test_entry_chooses_its_generator_by_name(tmp_path):
    registry = load(tmp_path, NAMED, generators=GENERATORS, generator=str.lower)
    assert (contents(registry, "loud", "a B"), contents(registry, "default", "a B")) == (["A B"], ["a b"])
    assert registry.entry("loud").config == {}, "the name is not part of the technique's own configuration"
    with refused(InvalidConfigError, "techniques.yaml:2: techniques.loud.generator:", "'upper'"):
        load(tmp_path, NAMED.replace("upper", "uper"), generators=GENERATORS)
    with refused(InvalidConfigError, "techniques.e.reranker"):
        load(tmp_path, 'techniques:\n  e: {use: "HERE:Echo", reranker: tei}\n')


@pytest.mark.parametrize(
    ("resources", "name", "remedy"),
    [
        ({}, "default", "config/models.yaml"),
        ({}, "loud", "config/models.yaml"),
        ({"generators": GENERATORS}, "default", "'title'"),
    ],
)
def test_missing_generator_names_the_remedy(tmp_path, resources, name, remedy):
    registry = load(tmp_path, NAMED, **resources)
    with refused(ConfigError, remedy):
        registry.get(name)


# What the file may contain


def test_file_without_techniques_has_the_packaged_ones(tmp_path):
    packaged = TechniqueRegistry.load(DEFAULTS / "techniques.yaml")
    for text, default in [("", "hybrid"), ("# nothing\n", "hybrid"), ("default: graph\ntechniques:\n", "graph")]:
        registry = load(tmp_path, text)
        assert (registry.names(), registry.default) == (packaged.names(), default)


def test_packaged_entries_are_imported_on_first_use_and_are_correct(tmp_path):
    """Under another name, an entry of the packaged file is checked like one of the user."""
    bodies = read_yaml(DEFAULTS / "techniques.yaml").data["techniques"]
    own = {"techniques": bodies | {f"own_{name}": body for name, body in bodies.items()}}
    (tmp_path / "techniques.yaml").write_text(json.dumps(own), encoding="utf-8")
    registry = TechniqueRegistry.load(tmp_path / "techniques.yaml")
    for name in bodies:
        assert registry.technique_class(name) is registry.technique_class(f"own_{name}")
        assert registry.builds_on(name) == registry.builds_on(f"own_{name}")


def test_all_problems_are_reported_at_once_with_their_lines(tmp_path):
    text = """default: nayve
techniques:
  a: {use: naiv}
  b: {use: naive, top_k: 0, tpo_k: 3}
  c: {use: "HERE:Missing"}
  d: {use: "no_such_package_here:Thing"}
  e: {use: "HERE:not_a_class"}
  f: {use: "HERE:NoWhere"}
  g: {use: "HERE:NoRetrieve"}
  h: {use: "HERE:NeedsTheMoon"}
  i: {use: newest}
  j: {use: newest, base: b, bases: [b]}
  k: {use: newest, base: atuo}
  l: 5
  m: {use: 5, base: [x]}
  n: {use: "HERE:Fixed"}
  o: {use: hybrid, bases: [b, b],
      weights: [1]}
"""
    with refused(InvalidConfigError) as caught:
        load(tmp_path, text)
    problems = [line.split("techniques.yaml:")[1] for line in str(caught.value).splitlines()[1:]]
    assert sorted(int(problem.split(":")[0]) for problem in problems) == [
        1, 3, 4, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15, 16, 18,
    ]  # fmt: skip


N = "techniques:\n  n: {use: naive}\n  t: "
SHOUTS = "".join(f'  {name}: {{use: "HERE:Shout", base: {base}}}\n' for name, base in ("ab", "bc", "ca"))
MISTAKES: list[tuple[str, list[str]]] = [
    # a boolean is not a number
    (N + "{use: bm25, top_k: true}", ["yaml:3: techniques.t.top_k: "]),
    (N + "{use: hybrid, bases: [n, n], weights: [true]}", ["yaml:3: techniques.t.weights.0: "]),
    (N + "{use: newest, base: n, similarity: false}", ["yaml:3: techniques.t.similarity: "]),
    (N + "{use: parent_document, base: n, reach: true}", ["yaml:3: techniques.t.reach: "]),
    (N + "{use: collection_routed, base: n, margin: true}", ["yaml:3: techniques.t.margin: "]),
    (N + "{use: pipeline, max_seconds: true, steps: {a: {technique: n}}}", ["yaml:3: techniques.t.max_seconds: "]),
    (N + "{use: pipeline, steps: {a: {technique: n, top_k: true}}}", ["yaml:3: techniques.t.steps.a.top_k: "]),
    # malformed
    ("techniques: {a: {use: naive\n", ["yaml:2: "]),
    ("techniques: [naive]\n", ["['naive']"]),
    ("techniques: {}\n", ["{}"]),
    ("techniqes: {}\n", ["yaml:1: ", "'techniqes'"]),
    ("techniques:\n  fast: {usee: bm25}\n", ["yaml:2: ", "'fast'", "'usee'"]),
    ("techniques:\n  fast: {top_k: 3}\n", ["'fast'"]),
    ("techniques:\n  fast:\n", ["'fast'"]),
    # a merged mapping has the lines of both
    (
        "techniques:\n  one: &all\n    use: naive\n    top_kk: 7\n  two: {<<: *all, top_k: 3}\n",
        ["yaml:4: techniques.one.top_kk: ", "yaml:5: techniques.two.top_kk: "],
    ),
    # techniques that build on each other, or on nothing
    *(
        (f"techniques:\n  graph: {{use: graph, base: auto{more}}}\n", ["yaml:2: techniques.graph.base:", "'auto'"])
        for more in ("", ", top_k: 3")
    ),
    ("techniques:\n" + SHOUTS, ["a -> b -> c -> a"]),
    ('techniques:\n  a: {use: "HERE:Shout", base: a}\n', ["a -> a"]),
    ('techniques:\n  loud: {use: "HERE:Shout", base: auto}\n', ["techniques.loud.base", "'auto'"]),
    ('techniques:\n  hybrid: {use: "HERE:Shout", base: auto}\n', ["hybrid -> hybrid"]),
    ('techniques:\n  naive: {}\n  both: {use: "HERE:Joined", bases: [auto]}\n', ["bases", "'auto'"]),
    ("techniques:\n  naive: {}\n  p: {use: pipeline, steps: {a: {technique: auto}}}\n", ["p: ", "'auto'"]),
    # a name that is not text
    *(
        (
            f"techniques:\n  {name}: {{use: naive}}\n  '{name}': {{use: bm25}}\ndefault: {name}\n",
            ["yaml:2: techniques."],
        )
        for name in ("1", "true", "null")
    ),
    # a lowest score is a number
    (N + "{use: hybrid, bases: [n, n], min_score: {naive: 0.3}}", ["yaml:3: techniques.t.min_score: "]),
    (N + "{use: bm25, min_score: true}", ["yaml:3: techniques.t.min_score: ", "True"]),
    (N + "{use: graph, base: n, min_score: .nan}", ["yaml:3: techniques.t.min_score: ", "nan"]),
]


@pytest.mark.parametrize(("text", "values"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistake_is_reported_once_with_its_line(tmp_path, text, values):
    with refused(InvalidConfigError, *values) as caught:
        load(tmp_path, text)
    assert all(str(caught.value).count(value) == 1 for value in values if "yaml" in value or "->" in value)


def test_missing_file_names_the_command_that_writes_one(tmp_path):
    with refused(InvalidConfigError, "ragistry init"):
        TechniqueRegistry.load(tmp_path / "techniques.yaml")


def test_auto_as_a_base_depends_on_the_store(tmp_path):
    text = """techniques:
  naive: {use: "HERE:Echo"}
  hybrid: {use: "HERE:Shout", base: naive}
  loud: {use: "HERE:Shout", base: auto}
"""
    registry, without = load(tmp_path, text), load(tmp_path, text)
    without.searches_words = False
    assert (registry.entry("loud").base, without.entry("loud").base) == ("hybrid", "naive")
    assert contents(without, "loud") == ["Q"]
    named = text.replace("loud:", "auto:").replace("base: auto", "base: naive")
    assert load(tmp_path, named).entry("auto").base == "naive"


BAD: dict[str, list[dict[str, Any]]] = {
    "bm25": [{"top_k": 0}, {"top_k": "many"}, {"k1": 1.2}],
    "naive": [{"top_k": 0, "topk": 3}],
    "graph": [{"hops": 0}, {"restart": 1}, {"seed": 3}, {"weight": -1}],
    "hybrid": [
        {"weights": [1.0]}, {"weights": [0, 0]}, {"weights": [1, float("nan")]}, {"weights": [1, -1]},
        {"fusion": "max"}, {"k": -1}, {"fetch": 0}, {"rrf_k": 60},
    ],
    "parent_document": [{"max_characters": 0}],
    "llm_rerank": [{"fetch": 101}],
    "rerank": [{"weight": 0}, {"weight": 1.1}, {"fetch": 0}, {"wieght": 0.5}],
    "learned_sparse": [{"encoder": 3}],
}  # fmt: skip


@pytest.mark.parametrize(("name", "config"), [(name, config) for name, configs in BAD.items() for config in configs])
def test_constructor_refuses_a_bad_configuration(name, config):
    cls = find_class(name)
    resources = dict.fromkeys(wanted_resources(cls), Ready()) | {"bases": [Ready(), Ready()]}
    with refused(InvalidConfigError, cls.__name__, *config):
        cls(config, **{wanted: resources[wanted] for wanted in wanted_resources(cls)})


# What the registry checks around a technique


def test_input_is_checked_before_the_technique_sees_it(tmp_path):
    technique: Any = load(tmp_path, 'techniques: {e: {use: "HERE:Echo"}}\n').get("e")
    for query in ("", " \n", None):
        with pytest.raises(EmptyQueryError):
            technique.retrieve(query)
    for top_k in (0, -1, 10_000, 2.5, True, "3"):
        with refused(InvalidLimitError, repr(top_k)):
            technique.retrieve("q", top_k=top_k)
    with pytest.raises(InvalidFilterError):
        technique.retrieve("q", where={})


def test_bases_of_this_package_are_not_checked_again(tmp_path, store, monkeypatch):
    store.add_documents([EmbeddedChunk("green tea", {"collection": "a"}, [1.0])])
    registry = load(tmp_path, "techniques:\n  bm25: {}\n  both: {use: hybrid, bases: [bm25, bm25]}\n", store=store)
    technique, checked = registry.get("both"), []
    monkeypatch.setattr("ragistry.techniques.built_in.check_query", checked.append)
    monkeypatch.setattr("ragistry.techniques.registered.matches", lambda *_: checked.append("result") or True)
    _, stages = traced(technique, "tea", where={"collection": "a"})
    assert checked == ["tea", "result"]
    assert [stage.name for stage in stages if stage.name != "search"] == ["both", "bm25", "bm25", "fuse"]


@pytest.mark.parametrize(
    ("use", "score"), [("Tuples", 0.5), *(("Scored", score) for score in (float("nan"), float("-inf"), None, "0.5"))]
)
def test_result_that_is_not_a_list_of_documents_with_finite_scores_is_an_error(tmp_path, use, score):
    technique = load(tmp_path, f'techniques: {{t: {{use: "HERE:{use}"}}}}\n', store=score).get("t")
    with refused(TechniqueError, "'t'", repr(score)):
        technique.retrieve("q")


@pytest.mark.parametrize("scores", [(0.1, 0.9), (3, 1, 2), (-2, -1), (0.5, 0.5, 0.6)])
def test_results_that_are_not_in_the_order_of_their_scores_are_an_error(scores):
    documents = [Document("text", {}, score, f"d{number}") for number, score in enumerate(scores)]
    technique = RegisteredTechnique("mine", Ready(documents))
    with refused(TechniqueError, "'mine'", documents[-1].id, "ranked()"):
        technique.retrieve("q")
    assert RegisteredTechnique("mine", Ready(ranked(documents))).retrieve("q")


def test_document_marked_as_outside_passes_every_condition():
    page = Document("page", {"outside": True, "url": "https://example.org"}, 1.0, "p")
    technique = RegisteredTechnique("web", Ready([page]))
    assert [one.id for one in technique.retrieve("q", where={"collection": "a"})] == ["p"]


def test_results_are_cut_to_top_k_and_each_technique_is_a_stage(tmp_path):
    text = 'techniques:\n  e: {use: "HERE:Fixed", texts: [a, b, c]}\n  j: {use: "HERE:Joined", bases: [e, e]}\n'
    technique = load(tmp_path, text).get("j")
    documents, stages = traced(technique, "q", top_k=2)
    assert ids(documents) == ["a", "a"]
    seen = [(stage.name, stage.depth, stage.documents_out) for stage in stages]
    assert seen == [("j", 0, 2), ("e", 1, 2), ("e", 1, 2)]
    assert len(technique.retrieve("q")) == 6


def test_error_inside_a_technique_names_it_and_the_line_of_the_users_file(tmp_path):
    text = 'techniques:\n  raw: {use: "HERE:NeedsGenerator"}\n  over: {use: "HERE:Shout", base: raw}\n'
    registry = load(tmp_path, text, generator=bytes.fromhex)
    with pytest.raises(ValueError) as caught:
        registry.get("over").retrieve("no number")
    path = Path(__file__).parent / "plugins.py"
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next(number for number, line in enumerate(lines, 1) if "self.generator.generate(query)" in line)
    assert caught.value.__notes__ == [f"technique {name!r} failed at {path}:{line}" for name in ("raw", "over")]


@pytest.mark.parametrize("technique", ["f", "over", "open", "nothing"])
def test_technique_or_base_that_returns_what_the_condition_excludes_is_an_error(tmp_path, store, technique):
    store.add_documents([EmbeddedChunk("green tea", {"collection": "a"}, [1.0])])
    text = """techniques:
  bm25: {use: bm25}
  f: {use: "HERE:Fixed", texts: [x]}
  over: {use: "HERE:Shout", base: f}
  open: {use: "HERE:Open", base: bm25}
  nothing: {use: "HERE:Nothing", base: f}
"""
    found = load(tmp_path, text, store=store).get(technique)
    assert len(found.retrieve("tea", where={"collection": "a"})) == (technique != "nothing")
    with refused(TechniqueError, "'open'" if technique == "open" else "'f'", "private"):
        found.retrieve("tea", where={"collection": "private"})


# Over one place, as the store of a repository

ROUTED = """techniques:
  naive: {use: "HERE:Echo"}
  one: {use: "HERE:Fixed", texts: [x]}
  routed: {use: collection_routed, base: one, router: explicit}
  twice: {use: collection_routed, base: routed, router: explicit}
  loud: {use: "HERE:Shout", base: twice}
  both: {use: "HERE:Joined", bases: [naive, routed]}
  steps: {use: pipeline, steps: {only: {technique: routed}}}
  alone: {use: "HERE:TakesTargets"}
  over: {use: "HERE:Shout", base: alone}
"""


def test_routing_technique_over_one_place_is_replaced_by_its_base(tmp_path):
    registry = load(tmp_path, ROUTED)
    with refused(ConfigError, "'routed'"):
        registry.get("loud")
    registry.one_place = True
    assert registry.get("twice") is registry.get("one")
    for name, found in {"loud": ["x"], "both": ["q", "x"], "steps": ["x"], "alone": ["q"], "over": ["Q"]}.items():
        assert contents(registry, name) == found, name


def test_routing_techniques_that_lead_to_each_other_end_with_an_error(tmp_path):
    text = 'techniques:\n  naive: {use: collection_routed, base: alone}\n  alone: {use: "HERE:TakesTargets"}\n'
    registry = load(tmp_path, text)
    registry.one_place = True
    with refused(ConfigError, "'alone'"):
        registry.get("alone")


def test_quoted_name_is_text_whatever_it_looks_like(tmp_path):
    for name in ("1", "true", "null"):
        assert load(tmp_path, f"techniques:\n  '{name}': {{use: bm25}}\ndefault: '{name}'\n").default == name


def test_score_of_own_code_is_added_to_the_scores():
    base, ties = scored("bm25", a=3.0), scored("bm25", a=3.0, b=3.0)
    [found] = RegisteredTechnique("mine", Ready([replace(base[0], score=0.5)])).retrieve("q")
    assert found.scores == (*base[0].scores, StageScore("mine", "other", 0.5))
    assert RegisteredTechnique("mine", Ready(ties)).retrieve("q") == ties
