"""BEIR's layout, read and written, and every problem of its files listed together."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import DatasetError
from ragistry.evaluation import Dataset, Text, read_beir, write_beir
from tests.messages import refused

DATASET = Dataset(
    "small",
    [Text("d 1", "Thé", "Steep\nit, 今."), Text("d2", "", "Rain.")],
    {"q1": "how to make tea", "q2": "weather"},
    {"q1": {"d 1": 2}, "q2": {"d2": 1, "d 1": 0}},
)


def files(folder: Path, corpus: str, queries: str, qrels: str = "") -> Path:
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(corpus, encoding="utf-8")
    (folder / "queries.jsonl").write_text(queries, encoding="utf-8")
    if qrels:
        (folder / "qrels" / "test.tsv").write_text(qrels, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "dataset",
    [
        DATASET,
        replace(DATASET, synthetic={"q2": {"kind": "title", "seed": 3}}),
        replace(DATASET, groups={"q1": "one", "q2": "one"}, kinds={"q1": "question"}),
        replace(DATASET, spans={"q1": {"d 1": [(4, 9), (10, 11)]}, "q2": {"d2": [(0, 4)]}}),
    ],
)
def test_written_set_is_read_and_has_the_same_bytes_again(dataset, tmp_path):
    for folder in (tmp_path / "small", tmp_path / "twice" / "small"):
        write_beir(dataset, folder, "dev")
    assert read_beir(tmp_path / "small", "dev") == dataset
    for path in (path for path in (tmp_path / "small").rglob("*.*") if path.is_file()):
        assert path.read_bytes() == (tmp_path / "twice" / path.relative_to(tmp_path)).read_bytes()
    with refused(DatasetError):
        read_beir(tmp_path / "small")


def test_files_as_people_write_them_are_read(tmp_path):
    folder = files(
        tmp_path / "set",
        '\ufeff{"_id": 7, "text": "Tea."}\n\n{"_id": "8", "title": null, "text": "Rain.", "metadata": {}}\n',
        '{"_id": "q1", "text": "tea", "group": 3, "metadata": {"synthetic": "yes"}}',
        "query-id\tcorpus-id\tscore\nq1\t7\t1.0\r\nq1\t7\t1\n",
    )
    dataset = read_beir(folder)
    assert dataset.corpus == [Text("7", "", "Tea."), Text("8", "", "Rain.")]
    assert (dataset.qrels, dataset.groups, dataset.synthetic) == ({"q1": {"7": 1}}, {"q1": "3"}, {})


def test_every_problem_of_every_file_is_listed_at_once(tmp_path):
    deep = f'{{"_id": "d9", "metadata": {"[" * 100_000}{"]" * 100_000}}}\n'
    folder = files(
        tmp_path / "set",
        f'{{"_id": "d1", "text": "Tea."}}\n{{"_id": "d1", "text": "Rain."}}\nnot json\n["a"]\n{{"text": "x"}}\n{deep}',
        '{"_id": "q1", "text": "tea"}\n{"_id": "q1", "text": "rain"}\n{"_id": "q2"}\n',
        "q1\td1\t1\nq1\td1\t2\nq1\td7\t1\nq1\td1\tnan\nq1\td1\tgood\nq1 d1 1\nq9\td1\t.5\nq1\td1\tinf\n",
    )
    places = [f"corpus.jsonl:{line}: " for line in (3, 4, 5, 6)] + [f"queries.jsonl:{line}: " for line in (2, 3)]
    places += [f"test.tsv:{line}: " for line in (2, 4, 5, 6, 7, 8)]
    with refused(DatasetError, *places, "the id 'q1'", "corpus: 'd7'", "documents: 'd1'"):
        read_beir(folder)
    (folder / "corpus.jsonl").write_text("{}\n" * 500)
    with refused(DatasetError) as caught:
        read_beir(folder)
    assert len(str(caught.value).splitlines()) < 30


def with_spans(folder: Path, *spans: Any) -> Dataset:
    corpus = '{"_id": "d1", "title": "Tea", "text": "Steep it. Steep it\\n twice."}\n{"_id": "d2", "text": "Rain."}\n'
    query = json.dumps({"_id": "q1", "text": "how to make tea", "spans": list(spans)})
    return read_beir(files(folder / "set", corpus, query))


def test_spans_are_offsets_into_the_text_or_text_and_need_no_qrels(tmp_path):
    found = with_spans(
        tmp_path,
        {"document": "d1", "start": 0, "end": 9},
        {"document": "d1", "text": "Steep it twice"},
        {"document": "d2", "text": "Rain.", "start": 3, "end": 8},
        {"document": "d1", "text": "Steep it", "start": 12, "end": 99},
        {"document": "d2", "text": "Snow."},
    )
    whole = found.texts["d1"]
    assert [whole[start:end] for start, end in found.spans["q1"]["d1"]] == ["Steep it.", "Steep it\n twice", "Steep it"]
    assert found.spans["q1"]["d1"][2][0] == whole.rindex("Steep"), "the nearest one"
    assert found.spans["q1"]["d2"] == [(0, 5)]
    assert found.qrels == {"q1": {"d1": 1, "d2": 1}}
    assert found.problems == ["query 'q1': 'Snow.' is not in 'd2'; this span is left out"]


@pytest.mark.parametrize(
    ("span", "value"),
    [
        ({"document": "d3", "text": "Tea"}, "'d3'"), ({"document": "d1", "start": 9, "end": 3}, "9 to 3 of 'd1'"),
        ({"document": "d2", "start": 0, "end": 6}, "0 to 6"), ({"document": "d2", "start": -1, "end": 2}, "-1 to 2"),
        ({"document": "d2", "start": 0}, "0 to 0 of 'd2'"), ({"document": "d2", "text": " "}, "'spans'"),
        ("Rain.", "queries.jsonl:1: 'spans'"),
    ],
)  # fmt: skip
def test_span_outside_of_its_source_is_refused(tmp_path, span, value):
    with refused(DatasetError, value):
        with_spans(tmp_path, span)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with refused(DatasetError, "0 to 9"):
        Dataset("d", [Text("d", "", "x")], {"q": "x"}, {}, spans={"q": {"d": [(0, 9)]}})
    with refused(DatasetError):
        read_beir(tmp_path)
    folder = files(tmp_path / "set", "", '{"_id": "q1", "text": "tea"}', "q1\td1\t1\n")
    with refused(DatasetError):
        read_beir(folder)
    (folder / "corpus.jsonl").unlink()
    packed = gzip.compress(b'{"_id": "d1", "text": "Tea."}\n' * 999)
    for damaged in (packed[:-9], packed[:10] + b"\xff" + packed[11:], b"plain text"):
        (folder / "corpus.jsonl.gz").write_bytes(damaged)
        with refused(DatasetError):
            read_beir(folder)


def test_published_set_is_read_whole(data):
    scifact = read_beir(data / "scifact")
    assert (len(scifact.corpus), len(scifact.judged)) == (5183, 300)
    assert scifact.problems == ["809 queries have no judgements and are not measured: '0', '10', '1000' and 806 more"]
