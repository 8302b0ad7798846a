"""techniques.yaml: what it may say, how everything that is wrong with it is reported at once, what techniques get."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry.config.settings import DEFAULTS
from ragistry.errors import (
    ConfigError,
    EmptyQueryError,
    InvalidConfigError,
    InvalidFilterError,
    InvalidLimitError,
    TechniqueError,
    UnknownTechniqueError,
)
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.trace import collect

HERE = "tests.techniques.plugins"


def load(tmp_path: Path, text: str, **resources: object) -> TechniqueRegistry:
    path = tmp_path / "techniques.yaml"
    path.write_text(text.replace("HERE", HERE).replace("MINE", __name__), encoding="utf-8")
    return TechniqueRegistry.load(path, resources)


def problems(tmp_path: Path, text: str, **resources: object) -> str:
    with pytest.raises(InvalidConfigError) as caught:
        load(tmp_path, text, **resources)
    return str(caught.value)


def contents(registry: TechniqueRegistry, name: str, query: str = "q") -> list[str]:
    return [document.content for document in registry.get(name).retrieve(query)]


# What techniques are made of


def test_user_technique_is_a_class_and_one_entry(tmp_path: Path) -> None:
    registry = load(tmp_path, 'techniques:\n  echo: {use: "HERE:Echo"}\n  shout: {use: "HERE:Shout", base: echo}\n')
    assert registry.names() == ["echo", "shout"]
    assert contents(registry, "shout", "hello") == ["HELLO"]
    assert registry.get("echo") is registry.get("echo"), "built once"


def test_bases_and_configuration_without_reserved_keys(tmp_path: Path) -> None:
    registry = load(
        tmp_path,
        'techniques:\n  one: {use: "HERE:Echo", color: red}\n  two: {use: "HERE:Fixed", texts: [x]}\n'
        '  both: {use: "HERE:Joined", bases: [one, two]}\n',
    )
    documents = registry.get("both").retrieve("q")
    assert [(one.content, one.metadata) for one in documents] == [("q", {"color": "red"}), ("x", {"collection": "a"})]


def test_resources_are_given_by_parameter_name(tmp_path: Path) -> None:
    text = """techniques:
  e: {use: "HERE:Echo"}
  g: {use: "HERE:NeedsGenerator"}
  all: {use: "HERE:Everything", base: e, bases: [e, e]}
"""
    registry = load(tmp_path, text, generator=str.title, store="s")
    assert contents(registry, "g", "a b") == ["A B"]
    assert contents(registry, "all") == ["base bases generator registry store"]
    assert registry.get("all").resources["store"] == "s", "attributes of the technique itself are visible"


NAMED = """techniques:
  loud: {use: "HERE:NeedsGenerator", generator: upper}
  default: {use: "HERE:NeedsGenerator"}
"""
GENERATORS = {"upper": str.upper, "title": str.title}


def test_entry_chooses_its_generator_by_name(tmp_path: Path) -> None:
    registry = load(tmp_path, NAMED, generators=GENERATORS, generator=str.title)
    assert (contents(registry, "loud", "a b"), contents(registry, "default", "a b")) == (["A B"], ["A B".title()])
    assert registry.entry("loud").config == {}, "the name is not part of the technique's own configuration"


def test_unknown_generator_is_reported_with_its_line(tmp_path: Path) -> None:
    said = problems(tmp_path, NAMED.replace("upper", "uper"), generators=GENERATORS)
    assert "techniques.yaml:2: techniques.loud.generator: no generator 'uper'; did you mean 'upper'?; there are" in said
    said = problems(tmp_path, 'techniques:\n  e: {use: "HERE:Echo", reranker: tei}\n')
    assert said.endswith("techniques.e.reranker: Echo does not take a parameter 'reranker'; remove this key")


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ({}, "needs a generator, and none is configured here; add one to config/models.yaml under 'generators', or"),
        ({"generators": GENERATORS}, "needs a generator; choose one with `generator: NAME` from 'title', 'upper'"),
    ],
)
def test_missing_generator_names_the_remedy(tmp_path: Path, resources: dict[str, object], said: str) -> None:
    registry = load(tmp_path, NAMED, **resources)
    with pytest.raises(ConfigError, match="techniques.yaml:3: technique 'default' ") as caught:
        registry.get("default")
    assert said in str(caught.value)


def test_named_generator_without_any_generators(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="technique 'loud': no generator 'upper'; there are none; add one to"):
        load(tmp_path, NAMED).get("loud")


# What the file may say


def test_unknown_technique_lists_the_known_ones(tmp_path: Path) -> None:
    registry = load(tmp_path, 'techniques:\n  hybrid: {use: "HERE:Echo"}\n')
    with pytest.raises(UnknownTechniqueError, match="no technique 'hybird'; did you mean 'hybrid'"):
        registry.get("hybird")


def test_file_without_techniques_has_the_packaged_ones(tmp_path: Path) -> None:
    packaged = TechniqueRegistry.load(DEFAULTS / "techniques.yaml")
    for text, default in [("", "hybrid"), ("# nothing\n", "hybrid"), ("default: mmr\ntechniques:\n", "mmr")]:
        registry = load(tmp_path, text)
        assert (registry.names(), registry.default) == (packaged.names(), default)
    assert "techniques: must be a mapping of names to entries, got {}" in problems(tmp_path, "techniques: {}\n")


def test_all_problems_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    message = problems(
        tmp_path,
        "default: nayve\n"
        "techniques:\n"
        "  a: {use: naiv}\n"
        "  b: {use: naive, top_k: 0, tpo_k: 3}\n"
        '  c: {use: "HERE:Missing"}\n'
        '  d: {use: "no_such_package_here:Thing"}\n'
        '  e: {use: "HERE:not_a_class"}\n'
        '  f: {use: "HERE:NoWhere"}\n'
        '  g: {use: "HERE:NoRetrieve"}\n'
        '  h: {use: "HERE:NeedsTheMoon"}\n'
        "  i: {use: mmr}\n"
        "  j: {use: mmr, base: b, bases: [b]}\n"
        "  k: {use: mmr, base: atuo}\n"
        "  l: 5\n"
        "  m: {use: 5, base: [x]}\n"
        '  n: {use: "HERE:Fixed"}\n'
        "  o: {use: hybrid, bases: [b, b],\n      weights: [1]}\n",
    )
    for line, said in [
        (1, "default: no technique 'nayve'; there are a, b,"),
        (3, "techniques.a.use: unknown technique 'naiv'; did you mean 'naive'"),
        (4, "techniques.b.top_k: Input should be greater than or equal to 1, got 0"),
        (4, "techniques.b.tpo_k: unknown setting 'tpo_k'; did you mean 'top_k'"),
        (5, "techniques.c.use: "),
        (6, "techniques.d.use: "),
        (7, "is not a class but"),
        (8, "NoWhere.retrieve does not take where"),
        (9, "NoRetrieve has no method retrieve"),
        (10, "asks for 'moon', which is not a resource; there are name, store, embedder"),
        (11, "techniques.i: MMRTechnique needs base; write `base: auto`"),
        (12, "techniques.j.bases: MMRTechnique does not take a parameter 'bases'"),
        (13, "techniques.k.base: no technique 'atuo'; did you mean 'auto'"),
        (14, "techniques.l: must be a mapping such as {use: naive}, got 5"),
        (15, "techniques.m.use: Input should be a valid string, got 5"),
        (15, "techniques.m.base: Input should be a valid string, got a list of 1"),
        (16, "techniques.n.texts: is missing"),
        (18, "techniques.o.weights: [1] are 1 for 2 bases; give each base one"),
    ]:
        assert any(f"techniques.yaml:{line}: " in part and said in part for part in message.splitlines()), said


def test_mistake_in_a_merged_mapping_has_a_line(tmp_path: Path) -> None:
    text = "techniques:\n  one: &all\n    use: naive\n    top_kk: 7\n  two: {<<: *all, top_k: 3}\n"
    said = problems(tmp_path, text)
    assert "techniques.yaml:4: techniques.one.top_kk: unknown setting 'top_kk'; did you mean 'top_k'" in said
    assert "techniques.yaml:5: techniques.two.top_kk: unknown setting 'top_kk'; did you mean 'top_k'" in said


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("use: naive, min_score: true", "min_score"),
        ("use: bm25, top_k: true", "top_k"),
        ("use: hybrid, bases: [n], weights: [true]", "weights.0"),
        ("use: mmr, base: n, lambda: false", "lambda"),
        ("use: parent_document, base: n, reach: true", "reach"),
        ("use: sentence_window, base: n, window: true", "window"),
        ("use: collection_routed, base: n, margin: true", "margin"),
        ("use: pipeline, max_seconds: true, steps: {a: {technique: n}}", "max_seconds"),
        ("use: pipeline, steps: {a: {technique: n, top_k: true}}", "steps.a.top_k"),
    ],
)
def test_booleans_are_not_numbers(tmp_path: Path, body: str, place: str) -> None:
    text = f"techniques:\n  n: {{use: naive}}\n  t: {{{body}}}\n"
    assert f"techniques.yaml:3: techniques.t.{place}: must be a number, got " in problems(tmp_path, text)


@pytest.mark.parametrize("name", ["1", "true", "null"])
def test_name_that_is_not_text_is_one_problem(tmp_path: Path, name: str) -> None:
    text = f"techniques:\n  {name}: {{use: naive}}\n  '{name}': {{use: bm25}}\ndefault: {name}\n"
    said = problems(tmp_path, text)
    assert "\n" not in said
    assert "techniques.yaml:2: techniques." in said
    assert "a name must be text, got" in said
    quoted = f"techniques:\n  '{name}': {{use: bm25}}\ndefault: '{name}'\n"
    assert load(tmp_path, quoted).default == name


def test_cycle_is_reported_once(tmp_path: Path) -> None:
    text = "techniques:\n" + "".join(
        f'  {name}: {{use: "HERE:Shout", base: {base}}}\n' for name, base in [("a", "b"), ("b", "c"), ("c", "a")]
    )
    message = problems(tmp_path, text)
    assert "techniques build on each other: a -> b -> c -> a" in message
    assert message.count("build on each other") == 1
    assert "a -> a" in problems(tmp_path, 'techniques:\n  a: {use: "HERE:Shout", base: a}\n')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("techniques: {a: {use: naive\n", "techniques.yaml:2: "),
        ("techniques: [naive]\n", r"techniques: must be a mapping of names to entries, got \['naive'\]"),
        ("techniqes: {}\n", "techniques.yaml:1: unknown setting 'techniqes'"),
        ("techniques:\n  fast: {usee: bm25}\n", "yaml:2: .*fast: has no `use`, and unknown .*write 'use' for 'usee'$"),
        ("techniques:\n  fast: {top_k: 3}\n", "has no `use`, and unknown technique 'fast'; .*or write 'module:Class'$"),
        ("techniques:\n  fast:\n", "has no `use`, and unknown technique 'fast'; .*or write 'module:Class'$"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidConfigError, match=said):
        load(tmp_path, text)


def test_missing_file_names_the_command_that_writes_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="there is no such file; `ragistry init` writes one"):
        TechniqueRegistry.load(tmp_path / "techniques.yaml")


AUTO = """techniques:
  naive: {use: "HERE:Echo"}
  hybrid: {use: "HERE:Shout", base: naive}
  loud: {use: "HERE:Shout", base: auto}
"""


def test_auto_as_a_base_depends_on_the_store(tmp_path: Path) -> None:
    registry, without = load(tmp_path, AUTO), load(tmp_path, AUTO)
    without.searches_words = False
    assert (registry.entry("loud").base, without.entry("loud").base) == ("hybrid", "naive")
    assert contents(without, "loud") == ["Q"]
    named = AUTO.replace("loud:", "auto:").replace("base: auto", "base: naive")
    assert load(tmp_path, named).entry("auto").base == "naive"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('techniques:\n  loud: {use: "HERE:Shout", base: auto}\n', "techniques.loud.base: no technique 'auto'"),
        ('techniques:\n  hybrid: {use: "HERE:Shout", base: auto}\n', "build on each other: hybrid -> hybrid"),
        ('techniques:\n  naive: {}\n  both: {use: "HERE:Joined", bases: [auto]}\n', "bases: no technique 'auto'"),
        ("techniques:\n  naive: {}\n  p: {use: pipeline, steps: {a: {technique: auto}}}\n", "p: no technique 'auto'"),
    ],
)
def test_auto_that_means_nothing_is_reported(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidConfigError, match=said):
        load(tmp_path, text)


# What the registry checks around a technique


def test_input_is_checked_before_the_technique_sees_it(tmp_path: Path) -> None:
    technique = load(tmp_path, 'techniques: {e: {use: "HERE:Echo"}}\n').get("e")
    for query in ("", " \n", None):
        with pytest.raises(EmptyQueryError):
            technique.retrieve(query)
    for top_k in (0, -1, 10_000, 2.5, True, "3"):
        with pytest.raises(InvalidLimitError, match="from 1 to 1,000"):
            technique.retrieve("q", top_k=top_k)
    with pytest.raises(InvalidFilterError):
        technique.retrieve("q", where={})


def test_technique_that_ignores_where_is_an_error(tmp_path: Path) -> None:
    text = 'techniques:\n  f: {use: "HERE:Fixed", texts: [x]}\n  s: {use: "HERE:Shout", base: f}\n'
    registry = load(tmp_path, text)
    assert len(registry.get("s").retrieve("q", where={"collection": "a"})) == 1
    with pytest.raises(TechniqueError, match="technique 'f' ignored where="):
        registry.get("s").retrieve("q", where={"collection": "private"})


def test_result_that_is_not_a_list_of_documents_is_an_error(tmp_path: Path) -> None:
    technique = load(tmp_path, 'techniques: {t: {use: "HERE:Tuples"}}\n').get("t")
    with pytest.raises(TechniqueError, match="'t' returned list .*must return a list of Document"):
        technique.retrieve("q")


@pytest.mark.parametrize("score", [float("nan"), float("-inf"), None, "0.5"])
def test_score_that_is_not_finite_is_an_error(tmp_path: Path, score: object) -> None:
    technique = load(tmp_path, 'techniques: {t: {use: "HERE:Scored"}}\n', store=score).get("t")
    with pytest.raises(TechniqueError, match=f"'t' gave document 'd' the score {score!r}; .*finite number"):
        technique.retrieve("q")


def test_results_are_cut_to_top_k_and_each_technique_is_a_stage(tmp_path: Path) -> None:
    text = 'techniques:\n  e: {use: "HERE:Fixed", texts: [a, b, c]}\n  j: {use: "HERE:Joined", bases: [e, e]}\n'
    technique = load(tmp_path, text).get("j")
    with collect() as trace:
        assert [document.id for document in technique.retrieve("q", top_k=2)] == ["a", "b"]
    stages = [(stage.name, stage.depth, stage.documents_out) for stage in trace.stages()]
    assert stages == [("j", 0, 2), ("e", 1, 2), ("e", 1, 2)]
    assert len(technique.retrieve("q")) == 6


def test_error_inside_a_technique_names_it_and_the_line_of_the_users_file(tmp_path: Path) -> None:
    text = 'techniques:\n  raw: {use: "HERE:NeedsGenerator"}\n  over: {use: "HERE:Shout", base: raw}\n'
    registry = load(tmp_path, text, generator=int)
    with pytest.raises(ValueError, match="invalid literal") as caught:
        registry.get("over").retrieve("no number")
    lines = (Path(__file__).parent / "plugins.py").read_text(encoding="utf-8").splitlines()
    line = next(number for number, line in enumerate(lines, 1) if "self.generator(query)" in line)
    failed = f"failed at {Path(__file__).parent / 'plugins.py'}:{line}"
    assert caught.value.__notes__ == [f"technique 'raw' {failed}", f"technique 'over' {failed}"]


# Over one place, as the store of a repository


class TakesTargets:
    """Choose among targets, and build on no other technique."""

    def __init__(self, config, *, targets):
        self.targets = targets

    def retrieve(self, query, **options):
        return []


ROUTED = """techniques:
  naive: {use: "HERE:Echo"}
  one: {use: "HERE:Fixed", texts: [x]}
  routed: {use: collection_routed, base: one, router: explicit}
  twice: {use: collection_routed, base: routed, router: explicit}
  loud: {use: "HERE:Shout", base: twice}
  both: {use: "HERE:Joined", bases: [naive, routed]}
  steps: {use: pipeline, steps: {only: {technique: routed}}}
  alone: {use: "MINE:TakesTargets"}
  over: {use: "HERE:Shout", base: alone}
"""


def test_routing_technique_over_one_place_is_replaced_by_its_base(tmp_path: Path) -> None:
    registry = load(tmp_path, ROUTED)
    with pytest.raises(ConfigError, match="nothing to choose from"):
        registry.get("loud")
    registry.one_place = True
    assert registry.get("twice") is registry.get("one")
    for name, found in {"loud": ["x"], "both": ["q", "x"], "steps": ["x"], "alone": ["q"], "over": ["Q"]}.items():
        assert contents(registry, name) == found, name


def test_routing_techniques_that_lead_to_each_other_end_with_an_error(tmp_path: Path) -> None:
    text = 'techniques:\n  naive: {use: collection_routed, base: alone}\n  alone: {use: "MINE:TakesTargets"}\n'
    registry = load(tmp_path, text)
    registry.one_place = True
    with pytest.raises(ConfigError, match="'alone' needs a targets, and none is configured here"):
        registry.get("alone")
