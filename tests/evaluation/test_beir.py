"""BEIR's layout, read and written, and every problem of its files told together."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ragistry.errors import DatasetError
from ragistry.evaluation.beir import read_beir, write_beir
from ragistry.evaluation.dataset import Dataset, Text

DATASET = Dataset(
    "small",
    [Text("d 1", "Thé", "Steep\nit, 今."), Text("d2", "", "Rain.")],
    {"q1": "how to make tea", "q2": "weather"},
    {"q1": {"d 1": 2}, "q2": {"d2": 1, "d 1": 0}},
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_beir(DATASET, tmp_path / "small")
    again = read_beir(tmp_path / "small")
    assert again == DATASET
    assert again.content_hash() == DATASET.content_hash()
    write_beir(again, tmp_path / "twice" / "small")
    for path in (tmp_path / "small").rglob("*.*l"):
        assert path.read_bytes() == (tmp_path / "twice" / path.relative_to(tmp_path)).read_bytes()


def test_gzip_and_other_splits_are_read(tmp_path: Path) -> None:
    write_beir(DATASET, tmp_path / "plain" / "small", "dev")
    write_beir(DATASET, tmp_path / "small", "dev", compressed=True)
    names = ("corpus.jsonl", "queries.jsonl", "qrels/dev.tsv")
    assert sorted(p.name for p in (tmp_path / "small").rglob("*.gz")) == [
        "corpus.jsonl.gz",
        "dev.tsv.gz",
        "queries.jsonl.gz",
    ]
    packed = [(tmp_path / "small" / f"{name}.gz").read_bytes() for name in names]
    assert [gzip.decompress(data) for data in packed] == [
        (tmp_path / "plain" / "small" / name).read_bytes() for name in names
    ]
    write_beir(DATASET, tmp_path / "small", "dev", compressed=True)
    assert packed == [(tmp_path / "small" / f"{name}.gz").read_bytes() for name in names]
    assert read_beir(tmp_path / "small", "dev") == DATASET
    for compressed in (False, True):
        other = replace(DATASET, queries=DATASET.queries | {"q1": f"tea {compressed}"})
        write_beir(other, tmp_path / "small", "dev", compressed=compressed)
        assert read_beir(tmp_path / "small", "dev") == other
    with pytest.raises(DatasetError, match=r"has no qrels/test.tsv \(splits there: dev\)"):
        read_beir(tmp_path / "small")


def test_a_synthetic_query_says_so_in_the_file_and_when_read_again(tmp_path: Path) -> None:
    dataset = replace(DATASET, synthetic={"q2": {"kind": "title", "seed": 3}})
    write_beir(dataset, tmp_path / "small")
    queries = tmp_path / "small" / "queries.jsonl"
    rows = [json.loads(line) for line in queries.read_text(encoding="utf-8").splitlines()]
    assert rows == [
        {"_id": "q1", "text": "how to make tea"},
        {"_id": "q2", "text": "weather", "metadata": {"synthetic": True, "kind": "title", "seed": 3}},
    ]
    again = read_beir(tmp_path / "small")
    assert again == dataset
    assert again.content_hash() == DATASET.content_hash(), "figures are the same whoever asked"


@pytest.mark.parametrize(
    "metadata", [{}, {"synthetic": False, "kind": "title"}, {"synthetic": "yes"}, "synthetic", None]
)
def test_what_does_not_say_that_it_is_synthetic_is_not(tmp_path: Path, metadata: object) -> None:
    write_beir(DATASET, tmp_path)
    with (tmp_path / "queries.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"_id": "q3", "text": "more", "metadata": metadata}) + "\n")
    assert read_beir(tmp_path).synthetic == {}


def files(folder: Path, corpus: str, queries: str, qrels: str) -> Path:
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_text(corpus, encoding="utf-8")
    (folder / "queries.jsonl").write_text(queries, encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text(qrels, encoding="utf-8")
    return folder


def test_files_as_people_write_them_are_read(tmp_path: Path) -> None:
    folder = files(
        tmp_path,
        '\ufeff{"_id": 7, "text": "Tea."}\n\n{"_id": "8", "title": null, "text": "Rain.", "metadata": {}}\n',
        '{"_id": "q1", "text": "tea"}',
        "q1\t7\t1.0\r\nq1\t7\t1\n",
    )
    dataset = read_beir(folder)
    assert dataset.corpus == [Text("7", "", "Tea."), Text("8", "", "Rain.")]
    assert dataset.qrels == {"q1": {"7": 1}}


def test_every_problem_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    folder = files(
        tmp_path,
        '{"_id": "d1", "text": "Tea."}\n{"_id": "d1", "text": "Rain."}\nnot json\n["a"]\n{"_id": "d4", "text": 3.5}\n',
        '{"_id": "q1", "text": "tea"}\n{"_id": "q1", "text": "rain"}\n{"text": "nameless"}\n',
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td1\t2\nq1\td7\t1\nq1\td1\tnan\nq1\td1\tgood\nq1 d1 1\nq9\td1\t.5\n",
    )
    with pytest.raises(DatasetError) as caught:
        read_beir(folder)
    message = str(caught.value)
    for said in (
        "corpus.jsonl:3: no JSON object: 'not json'",
        "corpus.jsonl:4: no JSON object",
        "corpus.jsonl:5: 'text' must be text",
        "queries.jsonl: the id 'q1' comes twice",
        "queries.jsonl:3: '_id' must be text",
        "test.tsv:3: 'd1' has grade 1 and 2 for query 'q1'",
        "test.tsv:5:",
        "test.tsv:6:",
        "test.tsv:7:",
        "test.tsv:8:",
        "1 document has an id that another one has: 'd1'",
        "1 document is judged relevant but not in the corpus: 'd7'",
    ):
        assert said in message


def test_a_line_that_is_nested_too_deep_is_told_as_any_other(tmp_path: Path) -> None:
    deep = f'{{"_id": "d1", "text": "Tea.", "metadata": {"[" * 100_000}{"]" * 100_000}}}\n'
    folder = files(tmp_path, deep, '{"_id": "q1", "text": "tea"}\n', "q1\td1\t1\n")
    with pytest.raises(DatasetError, match=r"corpus.jsonl:1: no JSON object: "):
        read_beir(folder)


def test_a_long_list_of_problems_is_cut(tmp_path: Path) -> None:
    folder = files(tmp_path, "{}\n" * 500, '{"_id": "q1", "text": "tea"}', "q1\td1\t1\n")
    with pytest.raises(DatasetError) as caught:
        read_beir(folder)
    assert "… and 480 more lines" in str(caught.value)
    assert len(str(caught.value).splitlines()) < 30


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"has no corpus.jsonl, queries.jsonl, qrels/test.tsv"):
        read_beir(tmp_path)
    folder = files(tmp_path, "", '{"_id": "q1", "text": "tea"}', "q1\td1\t1\n")
    with pytest.raises(DatasetError, match="the corpus is empty"):
        read_beir(folder)
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(b'{"_id": "d1", "text": "Tea."}\n' * 999)[:-9])
    with pytest.raises(DatasetError, match=r"corpus.jsonl.gz' cannot be read"):
        read_beir(folder)
    whole = bytearray(gzip.compress(b'{"_id": "d1", "text": "Tea."}\n' * 999))
    whole[10] ^= 0xFF  # the first byte behind gzip's head
    (folder / "corpus.jsonl.gz").write_bytes(whole)
    with pytest.raises(DatasetError, match=r"corpus.jsonl.gz' cannot be read: Error -3"):
        read_beir(folder)


def test_real_test_sets_are_sound(data: Path) -> None:
    scifact = read_beir(data / "scifact")
    assert (len(scifact.corpus), len(scifact.judged)) == (5183, 300)
    assert sum(grade > 0 for grades in scifact.qrels.values() for grade in grades.values()) == 339
    assert scifact.problems == ["809 queries have no judgements: no mean counts them: '0', '10', '1000' and 806 more"]
    assert read_beir(data / "scifact", "train").content_hash() != scifact.content_hash()
    assert read_beir(data / "limit-small").problems == []
