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
def test_a_written_set_is_read_and_has_the_same_bytes_again(dataset: Dataset, tmp_path: Path) -> None:
    for folder in (tmp_path / "small", tmp_path / "twice" / "small"):
        write_beir(dataset, folder, "dev")
    assert read_beir(tmp_path / "small", "dev") == dataset
    for path in (path for path in (tmp_path / "small").rglob("*.*") if path.is_file()):
        assert path.read_bytes() == (tmp_path / "twice" / path.relative_to(tmp_path)).read_bytes()
    with pytest.raises(DatasetError, match=r"has no qrels/test.tsv \(splits there: dev\)"):
        read_beir(tmp_path / "small")


def test_files_as_people_write_them_are_read(tmp_path: Path) -> None:
    folder = files(
        tmp_path / "set",
        '\ufeff{"_id": 7, "text": "Tea."}\n\n{"_id": "8", "title": null, "text": "Rain.", "metadata": {}}\n',
        '{"_id": "q1", "text": "tea", "group": 3, "metadata": {"synthetic": "yes"}}',
        "query-id\tcorpus-id\tscore\nq1\t7\t1.0\r\nq1\t7\t1\n",
    )
    dataset = read_beir(folder)
    assert dataset.corpus == [Text("7", "", "Tea."), Text("8", "", "Rain.")]
    assert (dataset.qrels, dataset.groups, dataset.synthetic) == ({"q1": {"7": 1}}, {"q1": "3"}, {})


def test_every_problem_of_every_file_is_listed_at_once(tmp_path: Path) -> None:
    deep = f'{{"_id": "d9", "metadata": {"[" * 100_000}{"]" * 100_000}}}\n'
    folder = files(
        tmp_path / "set",
        f'{{"_id": "d1", "text": "Tea."}}\n{{"_id": "d1", "text": "Rain."}}\nnot json\n["a"]\n{{"text": "x"}}\n{deep}',
        '{"_id": "q1", "text": "tea"}\n{"_id": "q1", "text": "rain"}\n{"_id": "q2"}\n',
        "q1\td1\t1\nq1\td1\t2\nq1\td7\t1\nq1\td1\tnan\nq1\td1\tgood\nq1 d1 1\nq9\td1\t.5\nq1\td1\tinf\n",
    )
    with pytest.raises(DatasetError) as caught:
        read_beir(folder)
    for problem in (
        *(f"corpus.jsonl:{line}: " for line in range(3, 7)),
        "corpus.jsonl:5: '_id': Field required",
        "queries.jsonl:2: the id 'q1' comes twice",
        "queries.jsonl:3: 'text': Field required",
        "'d1' has grade 1 for query 'q1', too; keep one",
        *(f"test.tsv:{line}: " for line in (2, 4, 5, 6, 7, 8)),
        "1 document has an id that another one has: 'd1'",
        "1 document is judged relevant but not in the corpus: 'd7'",
    ):
        assert problem in str(caught.value)
    (folder / "corpus.jsonl").write_text("{}\n" * 500)
    with pytest.raises(DatasetError, match="more lines") as caught:
        read_beir(folder)
    assert len(str(caught.value).splitlines()) < 30


def with_spans(folder: Path, *spans: Any) -> Dataset:
    corpus = '{"_id": "d1", "title": "Tea", "text": "Steep it. Steep it\\n twice."}\n{"_id": "d2", "text": "Rain."}\n'
    query = json.dumps({"_id": "q1", "text": "how to make tea", "spans": list(spans)})
    return read_beir(files(folder / "set", corpus, query))


def test_spans_are_offsets_into_the_text_or_text_and_need_no_qrels(tmp_path: Path) -> None:
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
    ("span", "problem"),
    [
        ({"document": "d3", "text": "Tea"}, "the span is of 'd3', which is not in the corpus"),
        ({"document": "d1", "start": 9, "end": 3}, "span 9 to 3 of 'd1' is not valid; give 0 <= start < end <= 26"),
        ({"document": "d2", "start": 0, "end": 6}, "the span 0 to 6 of 'd2' is not valid"),
        ({"document": "d2", "start": -1, "end": 2}, "the span -1 to 2 of 'd2' is not valid"),
        ({"document": "d2", "start": 0}, "the span 0 to 0 of 'd2' is not valid"),
        ({"document": "d2", "text": " "}, "queries.jsonl:1: 'spans'"),
        ("Rain.", "queries.jsonl:1: 'spans'"),
    ],
)
def test_a_span_outside_of_its_source_is_refused(tmp_path: Path, span: Any, problem: str) -> None:
    with pytest.raises(DatasetError) as caught:
        with_spans(tmp_path, span)
    assert problem in str(caught.value)
    with pytest.raises(DatasetError, match=r"query 'q': the span 0 to 9 of 'd' is not valid"):
        Dataset("d", [Text("d", "", "x")], {"q": "x"}, {}, spans={"q": {"d": [(0, 9)]}})


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"has no corpus.jsonl, queries.jsonl, qrels/test.tsv"):
        read_beir(tmp_path)
    folder = files(tmp_path / "set", "", '{"_id": "q1", "text": "tea"}', "q1\td1\t1\n")
    with pytest.raises(DatasetError, match="the corpus is empty"):
        read_beir(folder)
    (folder / "corpus.jsonl").unlink()
    packed = gzip.compress(b'{"_id": "d1", "text": "Tea."}\n' * 999)
    for damaged in (packed[:-9], packed[:10] + b"\xff" + packed[11:], b"plain text"):
        (folder / "corpus.jsonl.gz").write_bytes(damaged)
        with pytest.raises(DatasetError, match=r"corpus.jsonl.gz' cannot be read"):
            read_beir(folder)


def test_a_published_set_is_read_whole(data: Path) -> None:
    scifact = read_beir(data / "scifact")
    assert (len(scifact.corpus), len(scifact.judged)) == (5183, 300)
    assert scifact.problems == ["809 queries have no judgements: no mean counts them: '0', '10', '1000' and 806 more"]
