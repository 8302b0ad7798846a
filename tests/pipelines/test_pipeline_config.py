"""A pipeline in techniques.yaml: checked when the file is loaded, built from the registry's techniques."""

from pathlib import Path
from typing import ClassVar

import pytest
from pocketflow import Node
from pydantic import ValidationError

from ragistry.errors import ConfigError, InvalidConfigError, PipelineError, TechniqueError
from ragistry.pipelines.parts import actions_of
from ragistry.pipelines.technique import PipelineTechnique
from ragistry.techniques.registry import TechniqueRegistry
from tests.pipelines.parts import texts

PARTS = "tests.pipelines.parts"
YAML = f"""\
techniques:
  words: {{use: "{PARTS}:Words", top_k: 3}}
  blind: {{use: "{PARTS}:Blind"}}
  careful:
    use: pipeline
    max_steps: 5
    start: search
    steps:
      search: {{technique: words, on: {{found: END, empty: rewrite}}}}
      rewrite: {{node: "{PARTS}:Rewrite", with: {{old: stone, new: granite}}, on: {{default: wide}}}}
      wide: {{technique: words, top_k: 50, where: {{page: 2}}}}
  leaky: {{use: pipeline, steps: {{only: {{technique: blind}}}}}}
"""


def load(tmp_path: Path, text: str = YAML, **resources) -> TechniqueRegistry:
    path = tmp_path / "techniques.yaml"
    path.write_text(text, encoding="utf-8")
    return TechniqueRegistry.load(path, resources)


def complaints(config) -> dict[str, list[str]]:
    """Every complaint about the configuration, by where it is."""
    with pytest.raises(ValidationError) as caught:
        PipelineTechnique.Config.model_validate(config)
    found: dict[str, list[str]] = {}
    for item in caught.value.errors():
        found.setdefault(".".join(map(str, item["loc"])), []).append(item["ctx"]["error"])
    return found


def naive(**more):
    return {"technique": "naive", **more}


def test_a_pipeline_is_a_technique_of_the_registry(tmp_path):
    careful = load(tmp_path).get("careful")
    assert texts(careful.retrieve("oak")) == ["oak and beech"]
    assert texts(careful.retrieve("stone")) == ["beech and granite"]
    assert careful.retrieve("stone", where={"collection": "rocks"}) == []
    assert careful.retrieve("stone", top_k=1, where={"collection": "trees"})


def test_a_technique_that_ignores_where_is_found_out_inside_a_pipeline(tmp_path):
    with pytest.raises(TechniqueError, match="'blind' ignored where") as caught:
        load(tmp_path).get("leaky").retrieve("granite", where={"collection": "rocks"})
    assert any("in step 'only'" in note for note in caught.value.__notes__)


def test_what_is_wrong_is_told_with_file_and_line(tmp_path):
    text = YAML.replace("empty: rewrite", "emty: rewrit").replace("max_steps: 5", "max_step: 5")
    with pytest.raises(InvalidConfigError) as caught:
        load(tmp_path, text)
    said = str(caught.value)
    assert (
        "techniques.yaml:6: techniques.careful.max_step: unknown setting 'max_step'; did you mean 'max_steps'?" in said
    )
    assert "techniques.yaml:9: techniques.careful.steps.search.on.emty: step 'search' never returns 'emty'" in said
    assert "which is not a step; did you mean 'rewrite'?" in said


def test_a_pipeline_that_stands_on_itself_or_on_nothing_is_told_when_the_file_is_loaded(tmp_path):
    with pytest.raises(InvalidConfigError, match="build on each other: careful -> careful"):
        load(tmp_path, YAML.replace("search: {technique: words", "search: {technique: careful"))
    with pytest.raises(InvalidConfigError, match="no technique 'wrds'; did you mean 'words'"):
        load(tmp_path, YAML.replace("search: {technique: words", "search: {technique: wrds"))


def test_references_names_each_technique_once_and_passes_over_what_it_cannot_read():
    steps = {
        "a": naive(),
        "b": {"technique": "mmr"},
        "c": naive(),
        "d": {"node": "m:N"},
        "e": None,
        "f": {"technique": 3},
    }
    assert PipelineTechnique.references({"steps": steps}) == ["naive", "mmr"]
    assert PipelineTechnique.references({"steps": ["naive"]}) == []
    assert PipelineTechnique.references({}) == []


def test_complaints_about_fields_and_about_the_graph_come_together():
    config = {
        "max_second": 3,
        "start": "serch",
        "steps": {
            "search": naive(on={"found": "wid", "emty": "END"}, topk=3),
            "wide": {"tecnique": "naive", "on": 4},
            "loop": naive(on="loop", where={}),
            "none": None,
        },
    }
    found = complaints(config)
    assert found["max_second"][0].startswith("unknown setting 'max_second'; did you mean 'max_seconds'?")
    assert found["start"] == ["start is 'serch', which is not a step; did you mean 'search'?"]
    assert found["steps.search.topk"][0].startswith(
        "unknown setting 'topk'; did you mean 'top_k'?; there are generator, node, on"
    )
    assert found["steps.search.on.found"][0].endswith("which is not a step; did you mean 'wide'?")
    assert found["steps.search.on.emty"] == ["step 'search' never returns 'emty'; did you mean 'empty'?"]
    assert found["steps.search.on"] == ["step 'search' leads nowhere on 'empty'; give a step's name or 'END'"]
    assert found["steps.wide.on"] == ["write a step's name, or a mapping of actions to steps' names, got 4"]
    assert found["steps.loop.where"][0].startswith("where is empty")
    assert (
        "form a loop; say how many steps a run may take: build(max_steps=…), in YAML max_steps: …"
        in found["max_steps"][0]
    )
    assert found["steps"] == ["no way leads to 'END' from 'loop'"]
    assert "steps.none" in found


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({}, "a step is a technique or a node"),
        (naive(node=f"{PARTS}:Rewrite"), "a step is a technique or a node"),
        ({"node": f"{PARTS}:Rewrite", "top_k": 3}, "top_k and where are for a technique"),
        (naive(generator="writer"), "with, generator and reranker are for a node"),
        (naive(**{"with": {"k": 3}}), "with, generator and reranker are for a node"),
    ],
)
def test_a_step_is_one_thing_with_its_own_settings(step, said):
    assert said in complaints({"steps": {"a": step}})["steps.a"][0]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (f"{PARTS}:Rewrit", "has no 'Rewrit'; did you mean 'Rewrite'"),
        (f"{PARTS}:Words", "name a class that inherits from pocketflow.Node"),
        (f"{PARTS}:SHELF", "name a class that inherits from pocketflow.Node"),
        ("no_such_module_here:Node", "no module 'no_such_module_here'"),
        ("Rewrite", "write 'module:attribute'"),
    ],
)
def test_a_node_that_cannot_be_had_is_told_when_the_file_is_loaded(spec, said):
    assert said in complaints({"steps": {"a": {"node": spec}}})["steps.a.node"][0]


def test_the_declared_actions_of_a_node_are_checked_when_the_file_is_loaded():
    steps = {"a": {"node": f"{PARTS}:Visits", "on": {"done": "END", "agin": "a"}}}
    assert complaints({"max_steps": 3, "steps": steps})["steps.a.on.agin"] == [
        "step 'a' never returns 'agin'; did you mean 'again'?"
    ]


@pytest.mark.parametrize("config", [None, 3, [], {"steps": []}, {"steps": None}, {}, {"steps": {1: {}}}])
def test_what_is_no_pipeline_at_all(config):
    assert complaints(config)


def test_no_steps_and_bad_budgets():
    assert complaints({"steps": {}}) == {"steps": ["there is no step"]}
    found = complaints({"steps": {"a": naive()}, "max_steps": 0, "max_seconds": 0})
    assert found.keys() == {"max_steps", "max_seconds"}


class Shelf:
    """A registry without techniques, whose resources are empty."""

    resources: ClassVar = {}

    def get(self, name):
        raise AssertionError(name)


def test_a_node_that_cannot_be_made_says_with_what():
    step = {"node": f"{PARTS}:Limited", "with": {"limit": "x"}}
    with pytest.raises(ConfigError, match=r"Limited' cannot be made with \{'limit': 'x'\}: .*concatenate"):
        PipelineTechnique({"steps": {"a": step}}, registry=Shelf())


def test_what_a_node_does_not_take_or_lacks_is_told_when_the_file_is_loaded(tmp_path):
    steps = f"      a: {{node: '{PARTS}:Rewrite', with: {{nwe: x}}, on: b}}\n"
    steps += f"      b: {{node: '{PARTS}:Limited', on: c}}\n"
    steps += f"      c: {{node: '{PARTS}:Silent'}}\n      d: {{node: '{PARTS}:Rewrite', with: [x]}}\n"
    with pytest.raises(InvalidConfigError) as caught:
        load(tmp_path, f"techniques:\n  p:\n    use: pipeline\n    steps:\n{steps}")
    said = str(caught.value)
    assert "techniques.yaml:5: techniques.p.steps.a.with: Rewrite cannot be made with 'nwe': got an unexpected" in said
    assert "techniques.yaml:6: techniques.p.steps.b.with: Limited cannot be made with none: missing a required" in said
    assert "techniques.yaml:7: techniques.p.steps.c.node: Silent does not say what it returns; write in its" in said
    assert "techniques.yaml:8: techniques.p.steps.d.with: Input should be a valid dictionary" in said


def test_what_is_wrong_with_a_node_that_was_made_has_its_file_and_line(tmp_path):
    steps = f"{{a: {{node: '{PARTS}:Limited', with: {{limit: 1}}}}}}"
    registry = load(tmp_path, f"techniques:\n  p: {{use: pipeline, steps: {steps}}}\n")
    with pytest.raises(PipelineError, match=r"techniques.yaml:2: technique 'p': pipeline 'p' cannot .*:\n.*super"):
        registry.get("p")


def test_a_bad_configuration_given_by_hand_is_one_error():
    with pytest.raises(InvalidConfigError, match="start is 'b', which is not a step"):
        PipelineTechnique({"steps": {"a": naive()}, "start": "b"}, registry=Shelf())


def test_the_schema_describes_every_setting():
    schema = PipelineTechnique.Config.model_json_schema()
    fields = schema["properties"] | schema["$defs"]["StepConfig"]["properties"]
    assert fields.keys() >= {"steps", "start", "max_steps", "max_seconds", "technique", "node", "with", "on", "top_k"}
    assert all("description" in field for field in fields.values())


ASKING = f"""\
techniques:
  words: {{use: "{PARTS}:Words"}}
  asking:
    use: pipeline
    steps:
      rewrite: {{node: "{PARTS}:Asking", with: {{suffix: "!"}}, generator: upper, on: search}}
      search: {{technique: words}}
"""
GENERATORS = {"upper": str.upper, "title": str.title}


def test_node_gets_resources_by_parameter_name(tmp_path):
    registry = load(tmp_path, ASKING, generators=GENERATORS, generator=str.title, store="s")
    node = registry.get("asking").technique.pipeline.flow.steps["rewrite"].node
    assert (node.generator("oak"), node.suffix, node.store, node.name) == ("OAK", "!", "s", "rewrite")
    default = load(tmp_path, ASKING.replace("generator: upper, ", ""), generator=str.title)
    node = default.get("asking").technique.pipeline.flow.steps["rewrite"].node
    assert (node.generator("oak"), node.store) == ("Oak", None)


def test_resources_of_nodes_are_checked_when_the_file_is_loaded(tmp_path):
    with pytest.raises(InvalidConfigError) as caught:
        load(tmp_path, ASKING.replace("upper", "uper"), generators=GENERATORS)
    assert "techniques.yaml:6: techniques.asking.steps.rewrite.generator: no generator 'uper'; did" in str(caught.value)
    with pytest.raises(InvalidConfigError, match="rewrite.reranker: Asking does not take a parameter 'reranker'"):
        load(tmp_path, ASKING.replace("generator: upper", "reranker: tei"), generators=GENERATORS)
    with pytest.raises(ConfigError, match=r"techniques.yaml:3: .*: node '.*:Asking' needs a generator, and none is"):
        load(tmp_path, ASKING.replace("generator: upper, ", "")).get("asking")


def test_wanted_lists_the_resources_of_nodes():
    steps = {"a": {"node": f"{PARTS}:Asking", "generator": "upper"}, "b": naive(), "c": {"node": "no:Node"}, "d": 3}
    wanted = PipelineTechnique.wanted({"steps": steps})
    assert [tuple(one) for one in wanted] == [
        (("steps", "a"), "generator", "upper"), (("steps", "a"), "store", None), (("steps", "a"), "name", None),
    ]  # fmt: skip


class ByProperty(Node):
    """Its actions are known once the node is made."""

    @property
    def actions(self):
        return frozenset({"default"})


class ByMethod(Node):
    """Its actions are a method, not a set of names."""

    def actions(self):
        return frozenset({"default"})


def test_a_node_may_tell_its_actions_by_a_property(tmp_path):
    yaml = "techniques: {only: {use: pipeline, steps: {a: {node: '%s:%s'}}}}\n"
    pipeline = load(tmp_path, yaml % (__name__, "ByProperty")).get("only").technique.pipeline
    assert actions_of(pipeline.flow.steps["a"].node) == {"default"}
    with pytest.raises(InvalidConfigError, match="ByMethod does not say what it returns"):
        load(tmp_path, yaml % (__name__, "ByMethod"))
