"""Where a setting comes from, and how everything that is wrong is reported at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragistry.config.archives import archive_environment
from ragistry.config.files import FILES
from ragistry.config.resolve import resolve, store_entry, unknown_variables
from ragistry.config.settings import DEFAULTS, SOURCES, Settings
from ragistry.config.yaml_file import read_yaml
from ragistry.errors import InvalidConfigError
from tests.conftest import write_config as write


def problems(root: Path, environ: dict[str, str] | None = None, **files: str) -> str:
    """Everything that is wrong with these files and variables."""
    with pytest.raises(InvalidConfigError) as caught:
        resolve(write(root, **files), environ=environ or {})
    return str(caught.value)


def test_empty_folder_has_the_defaults(tmp_path: Path) -> None:
    resolved = resolve(tmp_path, environ={})
    assert resolved.settings == Settings()
    assert set(resolved.origins.values()) == {"default"}


def test_argument_before_environment_before_file(tmp_path: Path) -> None:
    write(tmp_path, documents="n_results: 7\nchunk_size: 900\nindex_headings: false\nlanguage: auto\n")
    resolved = resolve(tmp_path, {"n_results": 9}, {"RAGISTRY_N_RESULTS": "8", "RAGISTRY_CHUNK_SIZE": "800"})
    settings, origins = resolved.settings, resolved.origins
    assert (settings.n_results, origins["n_results"]) == (9, "argument")
    assert (settings.chunk_size, origins["chunk_size"]) == (800, "environment RAGISTRY_CHUNK_SIZE")
    assert (settings.index_headings, settings.language) == (False, "auto")
    assert origins["index_headings"].endswith("documents.yaml:3")
    assert resolve(tmp_path, environ={"RAGISTRY_INDEX_HEADINGS": "true"}).settings.index_headings is True


def test_variables_of_other_programs_are_read(tmp_path: Path) -> None:
    programs = {"OLLAMA": "ollama", "CHROMA": "chroma"}
    environ = {f"{variable}_HOST": f"http://{name}" for variable, name in programs.items()}
    environ |= {"CHROMA_TENANT": "t", "DOCPROC_TEI_EMBEDDINGS_URL": "http://tei"}
    settings = resolve(tmp_path, environ=environ).settings
    assert (settings.ollama_host, settings.chroma_host) == ("http://ollama", "http://chroma")
    assert (settings.chroma_tenant, settings.embed_url) == ("t", "http://tei")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("EMBED_MODL", "there is no 'EMBED_MODL'; did you mean 'EMBED_MODEL'?"),
        ("Debug", "there is no 'Debug'; did you mean 'DEBUG'?"),
        ("QQQ", "there is no 'QQQ'; `ragistry config` lists the settings"),
        ("LIMITS", "set limits in config/documents.yaml"),
        ("ARCHIVES", "set archives in config/vector_stores.yaml"),
    ],
)
def test_unknown_variable_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, remedy: str
) -> None:
    environ = {f"RAGISTRY_{name}": "x"}
    assert resolve(tmp_path, environ=environ).settings == Settings()
    assert caplog.messages == [f"environment RAGISTRY_{name} has no effect: {remedy}"]


def test_known_variables_are_not_warned_about() -> None:
    names = [variable for source in SOURCES.values() for variable in source.variables]
    assert len(names) > len(SOURCES)
    names += ["RAGISTRY_WORKSPACE", "RAGISTRY_DEBUG", "RAGISTRY_MCP_TOKEN", "PATH"]
    assert unknown_variables(dict.fromkeys(names, "x")) == []


def test_all_problems_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    message = problems(
        tmp_path,
        documents="chunk_sise: 900\nn_results: 0\nlanguage: deutsch\ncollections:\n  - {name: ok}\n  - {name: 'no t'}\n"
        "limits: {pages: true}\n",
        vector_stores="chromadb:\n  timeout: 0\nstore: 5\n",
    )
    assert message.startswith("7 problems:")
    for said in [
        "documents.yaml:1: chunk_sise: unknown setting 'chunk_sise'; did you mean 'chunk_size'",
        "documents.yaml:2: n_results: ",
        "documents.yaml:3: language: no analysis for the language 'deutsch'",
        "documents.yaml:6: collections.1.name:",
        "documents.yaml:7: limits.pages: must be a number, got True",
        "vector_stores.yaml:2: chromadb.timeout:",
        "vector_stores.yaml:3: store: must be a mapping such as {use: local}, got 5",
    ]:
        assert said in message
    twice = "collections: [{name: a}, {name: b},\n {name: a},\n {name: b}]\n"
    message = problems(tmp_path, documents=twice, vector_stores="")
    assert "documents.yaml:2: collections.2.name: collection 'a' is listed twice; rename one" in message
    assert "documents.yaml:3: collections.3.name: collection 'b' is listed twice; rename one" in message


def test_mistake_in_a_merged_mapping_has_a_line(tmp_path: Path) -> None:
    text = "collections:\n- &first {name: a, descriptionn: foo}\n- {<<: *first, name: b}\n- <<: *first\n"
    lines = [line.partition("documents.yaml:")[2].partition(": unknown")[0]
             for line in problems(tmp_path, documents=text).split("\n")[1:]]  # fmt: skip
    assert lines == [f"{number + 2}: collections.{number}.descriptionn" for number in range(3)]


WRONG: list[tuple[str | dict[str, object], str]] = [
    ({"RAGISTRY_N_RESULTS": "many"}, "environment RAGISTRY_N_RESULTS: n_results: "),
    ({"RAGISTRY_LANGUAGE": "klingon"}, "environment RAGISTRY_LANGUAGE: language: no analysis for the language"),
    ({"RAGISTRY_CHROMA_TIMEOUT": "1e10"}, "environment RAGISTRY_CHROMA_TIMEOUT: chroma_timeout: "),
    ({"RAGISTRY_CHROMA_TIMEOUT": "inf"}, "chroma_timeout"),
    ({"CHROMA_TENANT": "../x"}, "chroma_tenant: '../x' cannot be the name of a tenant or database"),
    ({"CHROMA_DATABASE": "a?b"}, "chroma_database: 'a?b' cannot be the name of a tenant or database"),
    ({"n_results": True}, "argument: n_results: must be a number, got True"),
    ({"chunk_sizes": 3}, "unknown setting 'chunk_sizes'; did you mean 'chunk_size'"),
    ("chunk_size: true", "a number"),
    ("chunk_overlap: false", "a number"),
    ("n_results: true", "a number"),
    ("n_results: [1, 2\n", "documents.yaml:2: "),
    ("n_results: 1\nn_results: 2\n", 'documents.yaml:2: found duplicate key "n_results"'),
    ("- a\n- b\n", "documents.yaml:1: must be a mapping of settings, got ['a', 'b']"),
    ("topic: MBA\n", "documents.yaml:1: topic: unknown setting 'topic'"),
    ("x: !!python/object/apply:os.system ['true']\n", "documents.yaml:1: x: unknown setting 'x'"),
    ("n_results: !!int 'x'\n", "documents.yaml:1: 'x' is not a valid int; correct it, or write it in quotes"),
    ("n_results: 5\nlanguage: 2024-13-45\n", "documents.yaml:2: '2024-13-45' is not a valid timestamp"),
    ("n_results: !!bool maybe\n", "documents.yaml:1: 'maybe' is not a valid bool"),
    ("n_results: !!float ''\n", "documents.yaml:1: '' is not a valid float"),
    ("collections: !!python/object/apply:os.system ['true']\n", "documents.yaml:1: collections.0: "),
    ("n_results: " + 3_000 * "[", "documents.yaml: lists or mappings are nested too deeply"),
    (
        "a: &a0 [x]\n" + "".join(f"b{n}: &a{n + 1} [*a{n}]\n" for n in range(100)),
        "lists or mappings are nested too deeply",
    ),
    ("a: &a [*a]\n", "documents.yaml:1: the value of the anchor 'a' contains itself"),
    ("a: *b\n", "documents.yaml:1: found undefined alias 'b'"),
    ("a: &a 1\nb: {<<: *a}\n", "documents.yaml:2: expected a mapping or a list of mappings for merging"),
    ("a: &a {b: 1}\nc:\n  <<: *a\n  <<: *a\n", 'documents.yaml:4: found duplicate key "<<"'),
    ("a: 1\n[b]: 2\n", "documents.yaml:2: found a list or mapping as a key; write the key in quotes"),
    ("a: 1\n---\nb: 2\n", "documents.yaml:2: found a second document"),
    ("a: 1\nb: \x07\n", "documents.yaml:2: "),
    ("# " + 1_000_000 * "x", "documents.yaml: larger than 1,000,000 bytes; keep only the configuration in it"),
    ("description: gr\udcfcn\n", "documents.yaml: not UTF-8 at byte 15; save the file as UTF-8"),
    (
        "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(12)),
        "documents.yaml: it means more than 200,000 values; write out",
    ),
]
"""Texts of documents.yaml, variables (in capitals) or arguments, and what is said of them."""


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[said for _, said in WRONG])
def test_mistake_is_one_error_with_its_place(tmp_path: Path, given: str | dict[str, object], said: str) -> None:
    write(tmp_path)
    if isinstance(given, str):
        (tmp_path / "config" / "documents.yaml").write_bytes(given.encode(errors="surrogateescape"))
        given = {}
    environ = {name: str(value) for name, value in given.items() if name.isupper()}
    with pytest.raises(InvalidConfigError) as caught:
        resolve(tmp_path, {name: value for name, value in given.items() if name not in environ}, environ)
    assert said in str(caught.value)


SCALARS = {
    "no": "no", "on": "on", "1:30": "1:30", "010": 10, "0o17": 15, "0x1F": 31, "-0b11": -3, "1_000": 1000, "'5'": "5",
    "true": True, "~": None, "1e3": 1000.0, "-.5": -0.5, ".inf": float("inf"), "2024-01-05": "2024-01-05",
    "! 5": "5", "!!str 5": "5", "!own 5": "5", "!!float 5": 5.0, "module:Class": "module:Class", "x #y": "x",
}  # fmt: skip
"""Values of a file, and what they mean in YAML 1.2."""


@pytest.mark.parametrize("pure", [False, True], ids=["C", "Python"])
def test_scalars_follow_yaml_1_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pure: bool) -> None:
    if pure:
        monkeypatch.delattr("yaml.CBaseLoader")
    path = tmp_path / "some.yaml"
    path.write_text("".join(f"k{n}: {text}\n" for n, text in enumerate(SCALARS)), encoding="utf-8")
    file = read_yaml(path)
    assert [repr(value) for value in file.data.values()] == [repr(value) for value in SCALARS.values()]
    assert [file.line([key]) for key in file.data] == list(range(1, len(SCALARS) + 1))


def test_merged_keys_have_the_value_of_the_first_mapping(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_text("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: {w: 2}}\nc:\n  <<: [*a, *b]\n  x: 3\n", encoding="utf-8")
    file = read_yaml(path)
    assert file.data["c"] == {"x": 3, "y": 1, "z": {"w": 2}}
    assert [file.line(["c", *keys]) for keys in (["x"], ["y"], ["z", "w"])] == [5, 3, 2]
    file.data["c"]["z"]["w"] = 0
    assert file.data["b"]["z"] == {"w": 2}  # each place has its own data


def test_two_files_may_not_differ(tmp_path: Path) -> None:
    said = problems(tmp_path, documents="chroma_path: one\n", vector_stores="chromadb: {persist_directory: other}\n")
    assert "vector_stores.yaml:1: persist_directory: 'other', but " in said
    assert "documents.yaml:1 says 'one' (chroma_path); keep one of the two" in said
    write(tmp_path, vector_stores="chromadb: {persist_directory: one}\n")
    assert resolve(tmp_path, environ={}).settings.chroma_path == "one"


@pytest.mark.parametrize("name", FILES)
def test_packaged_files_are_valid_and_have_the_defaults(name: str) -> None:
    file = read_yaml(DEFAULTS / name)
    assert FILES[name].model_validate(file.data) == FILES[name]()


def test_archives_are_listed_by_their_variables() -> None:
    values, origins = archive_environment({"RAG_DEFAULT_TOP_K": "99", "DOCPROC_CHROMADB_URL": "http://c:1/"})
    assert (values["RAG_DEFAULT_TOP_K"], origins["RAG_DEFAULT_TOP_K"]) == (20, "environment RAG_DEFAULT_TOP_K")
    assert values["DOCPROC_CHROMADB_URL"] == "http://c:1"
    assert (values["RAG_DEFAULT_LAYER"], origins["RAG_DEFAULT_LAYER"]) == ("chunk", "default")


def test_variable_takes_its_place_in_texts_of_any_store(tmp_path: Path) -> None:
    keys = 'url: "db://me:${PW}@h/${ NAME}", more: {a: ["${PW}", 1]}'
    write(tmp_path, vector_stores=f'store: {{use: "own:Store", {keys}}}\n')
    entry = store_entry(tmp_path, resolve(tmp_path, environ={"PW": "s3cret\n", " NAME": "x"}))
    assert entry.config == {"url": "db://me:s3cret@h/x", "more": {"a": ["s3cret", 1]}}
    write(tmp_path, vector_stores='store: {use: chroma, host: "http://${PLACE}"}\n')
    assert resolve(tmp_path, environ={"PLACE": "box"}).settings.chroma_host == "http://box"


def test_every_variable_of_a_store_that_is_not_set_is_named_with_its_line(tmp_path: Path) -> None:
    store = 'store:\n  use: "own:Store"\n  url: "${ONE}"\n  keys: ["${TWO}"]\n'
    assert re.findall(r"vector_stores\.yaml:(.*)", problems(tmp_path, {"TWO": " "}, vector_stores=store)) == [
        "3: store.url: the environment variable 'ONE' is not set; set it",
        "4: store.keys.0: the environment variable 'TWO' is not set; set it",
    ]
