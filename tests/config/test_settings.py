"""Where a setting comes from, and how everything that is wrong is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry.config.archive_settings import archive_environment
from ragistry.config.settings import DEFAULTS, FILES, SOURCES, Settings, resolve, unknown_variables
from ragistry.config.yaml_file import read_yaml
from ragistry.errors import InvalidConfigError


def write(root: Path, **files: str) -> Path:
    (root / "config").mkdir(exist_ok=True)
    for name, text in files.items():
        (root / "config" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return root


def test_an_empty_folder_has_the_defaults(tmp_path: Path) -> None:
    resolved = resolve(tmp_path, environ={})
    assert resolved.settings == Settings()
    assert set(resolved.origins.values()) == {"default"}


def test_every_setting_has_a_source() -> None:
    assert set(SOURCES) == set(Settings.model_fields)


def test_argument_before_environment_before_file(tmp_path: Path) -> None:
    write(tmp_path, documents="n_results: 7\nchunk_size: 900\nembed_model: minilm\n")
    environ = {"RAGISTRY_N_RESULTS": "8", "RAGISTRY_CHUNK_SIZE": "800"}
    resolved = resolve(tmp_path, {"n_results": 9}, environ)
    assert (resolved.settings.n_results, resolved.origins["n_results"]) == (9, "argument")
    assert (resolved.settings.chunk_size, resolved.origins["chunk_size"]) == (800, "environment RAGISTRY_CHUNK_SIZE")
    assert resolved.origins["embed_model"].endswith("documents.yaml:3")


def test_variables_of_the_field_are_honoured(tmp_path: Path) -> None:
    environ = {
        "OLLAMA_HOST": "box:1",
        "CHROMA_HOST": "c",
        "CHROMA_TENANT": "t",
        "DOCPROC_TEI_EMBEDDINGS_URL": "http://e",
    }
    settings = resolve(tmp_path, environ=environ).settings
    assert (settings.ollama_host, settings.chroma_host, settings.chroma_tenant) == ("box:1", "c", "t")
    assert settings.embed_url == "http://e"


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
def test_a_variable_that_decides_nothing_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, remedy: str
) -> None:
    environ = {f"RAGISTRY_{name}": "x"}
    said = f"environment RAGISTRY_{name} does nothing: {remedy}"
    assert unknown_variables(environ) == [said]
    assert resolve(tmp_path, environ=environ).settings == Settings()
    assert caplog.messages == [said]


def test_a_variable_that_decides_something_is_not_told() -> None:
    names = [variable for source in SOURCES.values() for variable in source.variables]
    names += ["RAGISTRY_WORKSPACE", "RAGISTRY_DEBUG", "RAGISTRY_MCP_TOKEN", "PATH"]
    assert unknown_variables(dict.fromkeys(names, "x")) == []


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        (
            {"RAGISTRY_CHROMA_TIMEOUT": "1e10"},
            "chroma_timeout: Input should be less than or equal to 86400, got '1e10'",
        ),
        ({"RAGISTRY_CHROMA_TIMEOUT": "inf"}, "chroma_timeout"),
        ({"CHROMA_TENANT": "../x"}, "chroma_tenant: '../x' cannot be the name of a tenant or database"),
        ({"CHROMA_DATABASE": "a?b"}, "chroma_database: 'a?b' cannot be the name of a tenant or database"),
    ],
)
def test_what_no_chroma_server_can_be_asked_with_is_refused(tmp_path: Path, environ: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        resolve(tmp_path, environ=environ)
    assert said in str(caught.value)


def test_all_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        documents="chunk_sise: 900\nn_results: 0\ncollections:\n  - {name: ok}\n  - {name: 'not ok'}\n",
        vector_stores="chromadb:\n  port: 70000\n",
    )
    with pytest.raises(InvalidConfigError) as caught:
        resolve(tmp_path, environ={})
    message = str(caught.value)
    assert message.startswith("4 problems:")
    assert "documents.yaml:1: chunk_sise: unknown setting 'chunk_sise'; did you mean 'chunk_size'" in message
    assert "documents.yaml:2: n_results:" in message
    assert "got 0" in message
    assert "documents.yaml:5: collections.1.name:" in message
    assert "vector_stores.yaml:2: chromadb.port:" in message


def test_a_collection_that_stands_there_twice_is_told_at_its_line(tmp_path: Path) -> None:
    write(
        tmp_path,
        documents="collections:\n  - name: a\n  - name: b\n  - description: D\n    name: a\n  - {name: b}\n",
    )
    with pytest.raises(InvalidConfigError) as caught:
        resolve(tmp_path, environ={})
    _, *lines = str(caught.value).splitlines()
    assert [line.partition("documents.yaml:")[2] for line in lines] == [
        "5: collections.2.name: collection 'a' stands here twice; rename one",
        "6: collections.3.name: collection 'b' stands here twice; rename one",
    ]


def test_a_mistake_that_is_merged_into_a_mapping_is_told_where_that_stands(tmp_path: Path) -> None:
    write(
        tmp_path,
        documents="n_results: 0\ncollections:\n- &first {name: a, descriptionn: foo}\n- {<<: *first, name: b}\n"
        "- <<: *first\n",
    )
    with pytest.raises(InvalidConfigError) as caught:
        resolve(tmp_path, environ={})
    lines = [line.strip().removeprefix(str(tmp_path / "config")) for line in str(caught.value).split("\n")[1:]]
    assert [line.partition(": unknown")[0].partition(": Input")[0] for line in lines] == [
        "/documents.yaml:1: n_results",
        "/documents.yaml:3: collections.0.descriptionn",
        "/documents.yaml:4: collections.1.descriptionn",
        "/documents.yaml:5: collections.2.descriptionn",
    ]


def test_an_unknown_language_is_told_with_all_else(tmp_path: Path) -> None:
    write(tmp_path, documents="n_results: 0\nlanguage: deutsch\n")
    with pytest.raises(InvalidConfigError, match=r"2 problems:(.|\n)*documents.yaml:2: language: no analysis for"):
        resolve(tmp_path, environ={})
    write(tmp_path, documents="language: DE\n")
    assert resolve(tmp_path, environ={}).settings.language == "DE"
    with pytest.raises(InvalidConfigError, match="environment RAGISTRY_LANGUAGE: language: no .* language 'klingon'"):
        resolve(tmp_path, environ={"RAGISTRY_LANGUAGE": "klingon"})


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("documents", "chunk_size: true"),
        ("documents", "chunk_overlap: false"),
        ("documents", "n_results: true"),
        ("documents", "limits: {pages: true}"),
        ("documents", "limits: {seconds: yes, megabytes: true}"),
        ("vector_stores", "chromadb: {port: true}"),
    ],
)
def test_true_and_false_are_no_numbers(tmp_path: Path, file: str, text: str) -> None:
    write(tmp_path, **{file: text})
    with pytest.raises(InvalidConfigError, match=r"a number.*got (True|False)"):
        resolve(tmp_path, environ={})


def test_true_as_an_argument_is_no_number(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="argument: n_results: must be a number, got True"):
        resolve(tmp_path, {"n_results": True}, environ={})


def test_a_bad_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="environment RAGISTRY_N_RESULTS: n_results: .*'many'"):
        resolve(tmp_path, environ={"RAGISTRY_N_RESULTS": "many"})


def test_an_unknown_argument_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="unknown setting 'chunk_sizes'; did you mean 'chunk_size'"):
        resolve(tmp_path, {"chunk_sizes": 3}, environ={})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n_results: [1, 2\n", "documents.yaml:2: "),
        ("n_results: 1\nn_results: 2\n", "documents.yaml:2: .*duplicate key"),
        ("- a\n- b\n", r"documents.yaml:1: must be a mapping of settings, got \['a', 'b'\]"),
        (
            "topic: MBA\n",
            "documents.yaml:1: topic: 'MBA' is no longer used; describe each collection under",
        ),
        ("x: !!python/object/apply:os.system ['true']\n", "documents.yaml:1: x: unknown setting 'x'"),
        ("collections: [{name: a}, {name: a}]\n", "collection 'a' stands here twice"),
    ],
)
def test_malformed_files_are_told_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, documents=text)
    with pytest.raises(InvalidConfigError, match=said):
        resolve(tmp_path, environ={})


def test_a_file_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "config" / "documents.yaml").write_bytes(b"description: gr\xfcn\n")
    with pytest.raises(InvalidConfigError, match="documents.yaml: not UTF-8 at byte 15; save the file as UTF-8"):
        resolve(tmp_path, environ={})


def test_two_files_may_not_differ(tmp_path: Path) -> None:
    write(tmp_path, documents="chroma_path: one\n", vector_stores="chromadb: {persist_directory: other}\n")
    with pytest.raises(
        InvalidConfigError, match="vector_stores.yaml:1: persist_directory: 'other', but .*:1 says 'one'"
    ):
        resolve(tmp_path, environ={})
    write(tmp_path, vector_stores="chromadb: {persist_directory: one}\n")
    assert resolve(tmp_path, environ={}).settings.chroma_path == "one"


@pytest.mark.parametrize("name", FILES)
def test_the_packaged_files_are_valid_and_say_the_defaults(name: str) -> None:
    file = read_yaml(DEFAULTS / name)
    assert FILES[name].model_validate(file.data) == FILES[name]()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n_results: !!int 'x'\n", "documents.yaml:1: 'x' is no int; correct it, or write it in quotes"),
        ("n_results: 5\nlanguage: 2024-13-45\n", "documents.yaml:2: '2024-13-45' is no timestamp"),
        ("n_results: !!bool maybe\n", "documents.yaml:1: 'maybe' is no bool"),
        ("n_results: !!float ''\n", "documents.yaml:1: '' is no float"),
        ("collections: !!python/object/apply:os.system ['true']\n", "documents.yaml:1: collections.0: .* got 'true'"),
        ("n_results: " + 3_000 * "[", "too deep"),
    ],
)
def test_a_value_that_yaml_cannot_build_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidConfigError, match=said):
        resolve(write(tmp_path, documents=text), environ={})


def test_archives_are_told_by_their_variables() -> None:
    values, origins = archive_environment({"RAG_DEFAULT_TOP_K": "99", "DOCPROC_CHROMADB_URL": "http://c:1/"})
    assert (values["RAG_DEFAULT_TOP_K"], origins["RAG_DEFAULT_TOP_K"]) == (20, "environment RAG_DEFAULT_TOP_K")
    assert values["DOCPROC_CHROMADB_URL"] == "http://c:1"
    assert (values["RAG_DEFAULT_LAYER"], origins["RAG_DEFAULT_LAYER"]) == ("chunk", "default")


def test_aliases_that_multiply_are_refused_at_once(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(12)]
    (tmp_path / "documents.yaml").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InvalidConfigError, match="documents.yaml: it stands for more than 200,000 values; write out"):
        read_yaml(tmp_path / "documents.yaml")
