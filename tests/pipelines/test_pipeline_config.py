"""A pipeline in techniques.yaml: checked when the file is loaded, built from the registry's techniques."""

from pathlib import Path
from typing import Any, ClassVar

import pytest
from pocketflow import Node
from pydantic import ValidationError

from ragistry.config.problems import explain
from ragistry.errors import ConfigError, InvalidConfigError, PipelineError, TechniqueError
from ragistry.pipelines.builder import actions_of
from ragistry.pipelines.technique import PipelineTechnique
from ragistry.techniques.registry import TechniqueRegistry
from tests.messages import check_message, refused
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


def load(tmp_path: Path, text: str = YAML, **resources: object) -> TechniqueRegistry:
    path = tmp_path / "techniques.yaml"
    path.write_text(text, encoding="utf-8")
    return TechniqueRegistry.load(path, resources)


def complaints(config: Any) -> dict[str, list[str]]:
    """Every complaint about the configuration, by where it is."""
    model, problems = PipelineTechnique.Config, []
    try:
        model.model_validate(config)
    except ValidationError as error:
        problems += [(item["loc"], explain(item, model)) for item in error.errors()]
    problems += PipelineTechnique.mistakes(config, ()) if isinstance(config, dict) else []
    found: dict[str, list[str]] = {}
    for path, said in problems:
        found.setdefault(".".join(map(str, path)), []).append(said)
    return found


def naive(**more: Any) -> dict[str, Any]:
    return {"technique": "naive", **more}


def test_pipeline_is_a_technique_of_the_registry(tmp_path):
    registry = load(tmp_path)
    careful = registry.get("careful")
    assert texts(careful.retrieve("oak")) == ["oak and beech"]
    assert texts(careful.retrieve("stone")) == ["beech and granite"]
    assert careful.retrieve("stone", where={"collection": "rocks"}) == []
    assert careful.retrieve("stone", top_k=1, where={"collection": "trees"})
    with refused(TechniqueError, "'blind'") as caught:
        registry.get("leaky").retrieve("granite", where={"collection": "rocks"})
    assert any("in step 'only'" in note for note in caught.value.__notes__)


SEARCH = "search: {technique: words"
NODES = f"""techniques:
  p:
    use: pipeline
    steps:
      a: {{node: '{PARTS}:Rewrite', with: {{nwe: x}}, on: b}}
      b: {{node: '{PARTS}:Limited', on: c}}
      c: {{node: '{PARTS}:Silent'}}
      d: {{node: '{PARTS}:Rewrite', with: [x]}}
"""


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (
            YAML.replace("empty: rewrite", "emty: rewrit").replace("max_steps: 5", "max_step: 5"),
            ["yaml:6: techniques.careful.max_step", "yaml:9: techniques.careful.steps.search.on.emty", "'rewrite'"],
        ),
        (YAML.replace(SEARCH, "search: {technique: careful"), ["careful -> careful"]),
        (YAML.replace(SEARCH, "search: {technique: wrds"), ["'wrds'", "'words'"]),
        (NODES, ["yaml:5: techniques.p.steps.a.with", "yaml:6: techniques.p.steps.b.with"]),
        (NODES, ["yaml:7: techniques.p.steps.c.node", "yaml:8: techniques.p.steps.d.with"]),
        (f"techniques: {{only: {{use: pipeline, steps: {{a: {{node: '{__name__}:ByMethod'}}}}}}}}", ["steps.a.node"]),
        ("techniques: {p: {use: pipeline, steps: [naive]}}", ["techniques.p.steps"]),
        (
            "techniques: {p: {use: pipeline, steps: {a: null, b: {technique: 3}, c: {node: 'no:Node'}, d: 3}}}",
            ["steps.a", "steps.b", "steps.c.node", "steps.d"],
        ),
    ],
)
def test_mistakes_are_reported_with_file_and_line(tmp_path, text, places):
    with refused(InvalidConfigError, *places):
        load(tmp_path, text)


def test_complaints_about_fields_and_about_the_graph_come_together():
    steps: dict[str, Any] = {
        "search": naive(on={"found": "wid", "emty": "END"}, topk=3),
        "wide": {"tecnique": "naive", "on": 4},
        "loop": naive(on="loop", where={}),
        "none": None,
    }
    found = complaints({"max_second": 3, "start": "serch", "steps": steps})
    assert found.keys() >= {
        "max_second", "max_steps", "start", "steps", "steps.search.topk", "steps.search.on.found", "steps.search.on",
        "steps.search.on.emty", "steps.wide.on", "steps.loop.where", "steps.none",
    }  # fmt: skip
    for place in sorted(found):
        check_message(f"{place}: {'; '.join(found[place])}")


@pytest.mark.parametrize(
    ("step", "place"),
    [
        ({}, "steps.a"),
        (naive(node=f"{PARTS}:Rewrite"), "steps.a"),
        ({"node": f"{PARTS}:Rewrite", "top_k": 3}, "steps.a"),
        (naive(generator="writer"), "steps.a"),
        (naive(**{"with": {"k": 3}}), "steps.a"),
        ({"node": f"{PARTS}:Visits", "on": {"done": "END", "agin": "a"}}, "steps.a.on.agin"),
        *(
            ({"node": spec}, "steps.a.node")
            for spec in (f"{PARTS}:Rewrit", f"{PARTS}:Words", f"{PARTS}:SHELF", "no_such_module_here:Node", "Rewrite")
        ),
    ],
)
def test_step_is_a_technique_or_a_node_that_exists(step, place):
    check_message("; ".join(complaints({"max_steps": 3, "steps": {"a": step}})[place]))


@pytest.mark.parametrize("config", [None, 3, [], {"steps": []}, {"steps": None}, {}, {"steps": {1: {}}}])
def test_what_is_not_a_pipeline_at_all(config):
    assert complaints(config)


def test_no_steps_and_bad_budgets():
    assert complaints({"steps": {}}) == {"steps": ["the pipeline has no steps"]}
    found = complaints({"steps": {"a": naive()}, "max_steps": 0, "max_seconds": 0})
    assert found.keys() == {"max_steps", "max_seconds"}


class Shelf:
    """A registry without techniques, whose resources are empty."""

    resources: ClassVar = {}

    def get(self, name: str) -> None:
        raise AssertionError(name)


def test_mistakes_that_show_when_a_pipeline_is_built(tmp_path):
    step = {"node": f"{PARTS}:Limited", "with": {"limit": "x"}}
    with refused(ConfigError, "Limited"):
        PipelineTechnique({"steps": {"a": step}}, registry=Shelf())
    with refused(PipelineError, "'b'"):
        PipelineTechnique({"steps": {"a": {"node": f"{PARTS}:Rewrite"}}, "start": "b"}, registry=Shelf())
    steps = f"{{a: {{node: '{PARTS}:Limited', with: {{limit: 1}}}}}}"
    registry = load(tmp_path, f"techniques:\n  p: {{use: pipeline, steps: {steps}}}\n")
    with refused(PipelineError, "techniques.yaml:2"):
        registry.get("p")


def test_schema_describes_every_setting():
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
    assert (node.generator.generate("oak"), node.suffix, node.store, node.name) == ("OAK", "!", "s", "rewrite")
    default = load(tmp_path, ASKING.replace("generator: upper, ", ""), generator=str.title)
    node = default.get("asking").technique.pipeline.flow.steps["rewrite"].node
    assert (node.generator.generate("oak"), node.store) == ("Oak", None)


def test_resources_of_nodes_are_checked_when_the_file_is_loaded(tmp_path):
    with refused(InvalidConfigError, "yaml:6: techniques.asking.steps.rewrite.generator", "'uper'"):
        load(tmp_path, ASKING.replace("upper", "uper"), generators=GENERATORS)
    with refused(InvalidConfigError, "rewrite.reranker"):
        load(tmp_path, ASKING.replace("generator: upper", "reranker: tei"), generators=GENERATORS)
    with refused(ConfigError, "Asking", "config/models.yaml"):
        load(tmp_path, ASKING.replace("generator: upper, ", "")).get("asking")


class ByProperty(Node):
    """Its actions are known once the node is made."""

    @property
    def actions(self) -> frozenset[str]:
        return frozenset({"default"})


class ByMethod(Node):
    """Its actions are a method, not a set of names."""

    def actions(self) -> frozenset[str]:
        return frozenset({"default"})


def test_node_may_have_its_actions_by_a_property(tmp_path):
    yaml = f"techniques: {{only: {{use: pipeline, steps: {{a: {{node: '{__name__}:ByProperty'}}}}}}}}\n"
    pipeline = load(tmp_path, yaml).get("only").technique.pipeline
    assert actions_of(pipeline.flow.steps["a"].node) == {"default"}
