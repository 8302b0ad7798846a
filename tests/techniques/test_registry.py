"""techniques.yaml: what it may say, and how all that is wrong with it is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def problems(tmp_path: Path, text: str) -> str:
    with pytest.raises(InvalidConfigError) as caught:
        load(tmp_path, text)
    return str(caught.value)


def test_a_technique_of_a_user_is_a_class_and_one_entry(tmp_path: Path) -> None:
    registry = load(tmp_path, 'techniques:\n  echo: {use: "HERE:Echo"}\n  shout: {use: "HERE:Shout", base: echo}\n')
    assert registry.names() == ["echo", "shout"]
    assert [document.content for document in registry.get("shout").retrieve("hello")] == ["HELLO"]


def test_several_bases_and_the_configuration_without_the_reserved_keys(tmp_path: Path) -> None:
    registry = load(
        tmp_path,
        'techniques:\n  one: {use: "HERE:Echo", color: red}\n  two: {use: "HERE:Fixed", texts: [x]}\n'
        '  both: {use: "HERE:Joined", bases: [one, two]}\n',
    )
    documents = registry.get("both").retrieve("q")
    assert [(document.content, document.metadata) for document in documents] == [
        ("q", {"color": "red"}),
        ("x", {"collection": "a"}),
    ]


def test_a_technique_is_built_once_and_only_when_asked_for(tmp_path: Path) -> None:
    registry = load(tmp_path, 'techniques:\n  e: {use: "HERE:Echo"}\n  g: {use: "HERE:NeedsGenerator"}\n')
    assert registry.get("e") is registry.get("e")
    with pytest.raises(ConfigError, match="technique 'g' needs a generator, and none is configured here"):
        registry.get("g")


def test_a_technique_may_take_whatever_there_is(tmp_path: Path) -> None:
    text = 'techniques:\n  e: {use: "HERE:Echo"}\n  all: {use: "HERE:Everything", base: e, bases: [e, e]}\n'
    registry = load(tmp_path, text, store="s")
    assert registry.get("all").retrieve("q")[0].content == "base bases registry store"
    assert registry.get("all").resources["store"] == "s", "what the class keeps is seen through its name"


def test_resources_come_by_the_name_of_the_parameter(tmp_path: Path) -> None:
    text = 'techniques:\n  g: {use: "HERE:NeedsGenerator"}\n  all: {use: "HERE:Everything"}\n'
    registry = load(tmp_path, text, generator=str.title, store="s")
    assert registry.get("g").retrieve("a b")[0].content == "A B"
    assert registry.get("all").retrieve("q")[0].content == "generator registry store"


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    registry = load(tmp_path, 'techniques:\n  hybrid: {use: "HERE:Echo"}\n')
    with pytest.raises(UnknownTechniqueError, match="no technique 'hybird'; did you mean 'hybrid'"):
        registry.get("hybird")


def test_all_problems_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
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
        "  k: {use: mmr, base: zz}\n"
        "  l: 5\n"
        "  m: {use: 5, base: [x]}\n"
        '  n: {use: "HERE:Fixed"}\n',
    )
    for line, said in [
        (3, "techniques.a.use: unknown technique 'naiv'; did you mean 'naive'"),
        (4, "techniques.b.top_k: Input should be greater than or equal to 1, got 0"),
        (4, "techniques.b.tpo_k: unknown setting 'tpo_k'; did you mean 'top_k'"),
        (5, "techniques.c.use: "),
        (6, "techniques.d.use: "),
        (7, "is not a class but"),
        (8, "NoWhere.retrieve does not take where"),
        (9, "NoRetrieve has no method retrieve"),
        (10, "asks for 'moon', which nobody provides; there are name, store, embedder"),
        (11, "techniques.i: MMRTechnique needs base; write `base: naive`"),
        (12, "techniques.j.bases: MMRTechnique takes no bases"),
        (13, "techniques.k.base: no technique 'zz'"),
        (14, "techniques.l: must be a mapping such as {use: naive}, got 5"),
        (15, "techniques.m.use: must be the name of a technique or 'module:Class', got 5"),
        (15, "techniques.m.base: must be the name of a technique, got ['x']"),
        (16, "techniques.n.texts: is missing"),
    ]:
        assert any(f"techniques.yaml:{line}: " in part and said in part for part in message.splitlines()), said


def test_a_mistake_in_what_is_merged_has_a_line_too(tmp_path: Path) -> None:
    text = "techniques:\n  one: &all\n    use: naive\n    top_kk: 7\n  two: {<<: *all, top_k: 3}\n"
    said = problems(tmp_path, text)
    assert "techniques.yaml:4: techniques.one.top_kk: unknown setting 'top_kk'; did you mean 'top_k'" in said
    assert "techniques.yaml:5: techniques.two.top_kk: unknown setting 'top_kk'; did you mean 'top_k'" in said


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("use: naive, top_k: true", "top_k"),
        ("use: naive, min_score: true", "min_score"),
        ("use: naive, chunk_size: true", "chunk_size"),
        ("use: bm25, top_k: true", "top_k"),
        ("use: hybrid, bases: [n], k: true", "k"),
        ("use: hybrid, bases: [n], fetch: true", "fetch"),
        ("use: hybrid, bases: [n], weights: [true]", "weights.0"),
        ("use: mmr, base: n, fetch: true", "fetch"),
        ("use: mmr, base: n, lambda: false", "lambda"),
        ("use: parent_document, base: n, reach: true", "reach"),
        ("use: sentence_window, base: n, window: true", "window"),
        ("use: collection_routed, base: n, margin: true", "margin"),
        ("use: collection_routed, base: n, sample: true", "sample"),
        ("use: pipeline, max_steps: true, steps: {a: {technique: n}}", "max_steps"),
        ("use: pipeline, max_seconds: true, steps: {a: {technique: n}}", "max_seconds"),
        ("use: pipeline, steps: {a: {technique: n, top_k: true}}", "steps.a.top_k"),
    ],
)
def test_true_is_no_number(tmp_path: Path, body: str, place: str) -> None:
    text = f"techniques:\n  n: {{use: naive}}\n  t: {{{body}}}\n"
    assert f"techniques.yaml:3: techniques.t.{place}: must be a number, got " in problems(tmp_path, text)


@pytest.mark.parametrize("name", ["1", "1.5", "true", "null"])
def test_a_name_that_is_no_text_is_told_and_loses_no_other(tmp_path: Path, name: str) -> None:
    text = f"techniques:\n  {name}: {{use: naive}}\n  '{name}': {{use: bm25}}\ndefault: {name}\n"
    said = problems(tmp_path, text)
    assert "\n" not in said, "one problem"
    assert "techniques.yaml:2: techniques." in said
    assert "a name must be text, got" in said
    quoted = f"techniques:\n  '{name}': {{use: bm25}}\ndefault: '{name}'\n"
    assert load(tmp_path, quoted).default == name


def test_weights_that_are_not_one_a_base_are_told_when_the_file_is_loaded(tmp_path: Path) -> None:
    text = "techniques:\n  n: {use: naive}\n  h: {use: hybrid, bases: [n, n],\n    weights: [1]}\n"
    assert problems(tmp_path, text).endswith(
        "techniques.yaml:4: techniques.h.weights: [1] are 1 for 2 bases; give each base one"
    )


def test_the_default_must_exist(tmp_path: Path) -> None:
    message = problems(tmp_path, "default: nayve\ntechniques:\n  naive: {use: naive}\n")
    assert "techniques.yaml:1: default: no technique 'nayve'; did you mean 'naive'" in message


def test_a_cycle_is_shown(tmp_path: Path) -> None:
    text = "techniques:\n" + "".join(
        f'  {name}: {{use: "HERE:Shout", base: {base}}}\n' for name, base in [("a", "b"), ("b", "c"), ("c", "a")]
    )
    message = problems(tmp_path, text)
    assert "techniques stand on each other: a -> b -> c -> a" in message
    assert message.count("stand on each other") == 1
    assert "a -> a" in problems(tmp_path, 'techniques:\n  a: {use: "HERE:Shout", base: a}\n')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("techniques: {a: {use: naive\n", "techniques.yaml:2: "),
        ("techniques: [naive]\n", r"techniques: must be a mapping of names, got \['naive'\]"),
        ("techniqes: {}\n", "techniques.yaml:1: unknown setting 'techniqes'"),
    ],
)
def test_malformed_yaml(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidConfigError, match=said):
        load(tmp_path, text)


def test_a_missing_file_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="there is no such file; `ragistry init` writes one"):
        TechniqueRegistry.load(tmp_path / "techniques.yaml")


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


def test_a_technique_that_ignores_where_is_stopped(tmp_path: Path) -> None:
    text = 'techniques:\n  f: {use: "HERE:Fixed", texts: [x]}\n  s: {use: "HERE:Shout", base: f}\n'
    registry = load(tmp_path, text)
    assert len(registry.get("s").retrieve("q", where={"collection": "a"})) == 1
    with pytest.raises(TechniqueError, match="technique 'f' ignored where="):
        registry.get("s").retrieve("q", where={"collection": "private"})


def test_a_technique_that_returns_something_else_is_stopped(tmp_path: Path) -> None:
    technique = load(tmp_path, 'techniques: {t: {use: "HERE:Tuples"}}\n').get("t")
    with pytest.raises(TechniqueError, match="'t' returned list .*must return a list of Document"):
        technique.retrieve("q")


@pytest.mark.parametrize("score", [float("nan"), float("-inf"), None, "0.5"])
def test_a_score_that_is_no_finite_number_is_stopped(tmp_path: Path, score: object) -> None:
    technique = load(tmp_path, 'techniques: {t: {use: "HERE:Scored"}}\n', store=score).get("t")
    with pytest.raises(TechniqueError, match=f"'t' gave document 'd' the score {score!r}; .*finite number"):
        technique.retrieve("q")


def test_no_more_than_was_asked_for_get_out(tmp_path: Path) -> None:
    text = 'techniques:\n  e: {use: "HERE:Fixed", texts: [a, b, c]}\n  j: {use: "HERE:Joined", bases: [e, e]}\n'
    technique = load(tmp_path, text).get("j")
    with collect() as trace:
        assert [document.id for document in technique.retrieve("q", top_k=2)] == ["a", "b"]
    assert trace.stages()[0].documents_out == 2
    assert len(technique.retrieve("q")) == 6


def test_nested_techniques_are_stages_of_the_trace(tmp_path: Path) -> None:
    text = 'techniques:\n  e: {use: "HERE:Echo"}\n  s: {use: "HERE:Shout", base: e}\n'
    technique = load(tmp_path, text).get("s")
    with collect() as trace:
        technique.retrieve("q")
    assert [(stage.name, stage.depth, stage.documents_out) for stage in trace.stages()] == [("s", 0, 1), ("e", 1, 1)]


def test_a_default_that_is_not_there_is_told_with_all_else(tmp_path: Path) -> None:
    told = problems(tmp_path, 'default: nope\ntechniques:\n  x: {use: naiv}\n  e: {use: "HERE:Echo"}\n')
    assert "2 problems" in told
    assert "techniques.yaml:1: default: no technique 'nope'; there are x, e" in told
    assert "techniques.yaml:3: techniques.x.use: unknown technique 'naiv'" in told
    assert "default:" not in problems(tmp_path, "default: x\ntechniques:\n  x: {use: naiv}\n")


def test_what_a_technique_raises_by_itself_is_noted_with_its_name(tmp_path: Path) -> None:
    text = 'techniques:\n  raw: {use: "HERE:NeedsGenerator"}\n  over: {use: "HERE:Shout", base: raw}\n'
    registry = load(tmp_path, text, generator=int)
    with pytest.raises(ValueError, match="invalid literal") as caught:
        registry.get("over").retrieve("no number")
    assert caught.value.__notes__ == ["technique 'raw' failed", "technique 'over' failed"]


def test_what_a_resource_is_configured_by_is_told(tmp_path: Path) -> None:
    registry = load(tmp_path, 'techniques:\n  g: {use: "HERE:NeedsGenerator"}\n')
    with pytest.raises(ConfigError, match=r"techniques.yaml:2: technique 'g' needs .*set `generate_model`"):
        registry.get("g")


class TakesTargets:
    """Choose among targets, and stand on nothing."""

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


def test_over_one_place_a_technique_that_chooses_stands_for_what_it_stands_on(tmp_path: Path) -> None:
    registry = load(tmp_path, ROUTED)
    with pytest.raises(ConfigError, match="nothing to choose from"):
        registry.get("loud")
    registry.one_place = True
    assert registry.get("twice") is registry.get("one")
    for name, found in {"loud": ["x"], "both": ["q", "x"], "steps": ["x"], "alone": ["q"], "over": ["Q"]}.items():
        assert [document.content for document in registry.get(name).retrieve("q")] == found, name


def test_choosing_techniques_that_lead_to_each_other_come_to_an_end(tmp_path: Path) -> None:
    text = 'techniques:\n  naive: {use: collection_routed, base: alone}\n  alone: {use: "MINE:TakesTargets"}\n'
    registry = load(tmp_path, text)
    registry.one_place = True
    with pytest.raises(ConfigError, match="'alone' needs a targets, and none is configured here"):
        registry.get("alone")


def test_auto_as_a_base_is_what_the_store_can_do(tmp_path: Path) -> None:
    text = """techniques:
  naive: {use: "HERE:Echo"}
  hybrid: {use: "HERE:Shout", base: naive}
  loud: {use: "HERE:Shout", base: auto}
"""
    registry = load(tmp_path, text)
    assert (registry.entry("loud").base, registry.entry("hybrid").base) == ("hybrid", "naive")
    without = load(tmp_path, text)
    without.searches_words = False
    assert without.entry("loud").base == "naive"
    assert [document.content for document in without.get("loud").retrieve("q")] == ["Q"]
    assert (
        load(tmp_path, text.replace("loud:", "auto:").replace("base: auto", "base: naive")).entry("auto").base
        == "naive"
    )


@pytest.mark.parametrize(("text", "said"), [
    ('techniques:\n  loud: {use: "HERE:Shout", base: auto}\n', "techniques.loud.base: no technique 'auto'"),
    ('techniques:\n  hybrid: {use: "HERE:Shout", base: auto}\n', "stand on each other: hybrid -> hybrid"),
    ('techniques:\n  naive: {}\n  both: {use: "HERE:Joined", bases: [naive, auto]}\n', "bases: no technique 'auto'"),
    ("techniques:\n  naive: {}\n  p: {use: pipeline, steps: {a: {technique: auto}}}\n", "p: no technique 'auto'"),
])  # fmt: skip
def test_auto_stands_for_a_technique_that_is_there_and_another(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidConfigError, match=said):
        load(tmp_path, text)


@pytest.mark.parametrize(("body", "said"), [
    ("{usee: bm25}", "or write 'module:Class', or write 'use' for 'usee'"), ("{top_k: 3}", "or write 'module:Class'"),
    ("", "or write 'module:Class'"),
])  # fmt: skip
def test_an_entry_without_use_is_told_so(tmp_path: Path, body: str, said: str) -> None:
    told = problems(tmp_path, f"techniques:\n  n: {{use: naive}}\n  fast: {body}\n")
    assert "techniques.yaml:3: techniques.fast: says no `use`: unknown technique 'fast'; there are " in told
    assert told.endswith(said)
