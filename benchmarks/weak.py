"""Are weak results called weak? ``python -m benchmarks.weak [--quick] [--misses] [SET …]``.

For each set and technique: the shares of searches whose result is marked as weak (`ragistry.techniques.weakness`), of
questions that a document answers, of the same questions without that document, of claims of SciFact or questions of
XQuAD, which are about another subject, and of gibberish. Other documents of a set are about the same subject and may
answer too, so the second share cannot be 100 %.

Follow-ups stand for the questions of a dialogue: the words of the title of the answering document (of names, in a set
without titles) are replaced by "it". Only those of which the answering document is among the first passages count.

A source is a document; in claude-docs, whose documents are sections, it is a page. In xquad-de, the vectors are those
of an English model.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.quality import DATA, LANGUAGES
from ragistry import open_workspace
from ragistry.evaluation import read_beir
from ragistry.evaluation.data.dataset import Dataset
from ragistry.library.service import DocumentService
from ragistry.text.analysis import analyse
from ragistry.types import EmbeddedChunk

SETS = ("claude-docs", "xquad-en", "xquad-de", "hugo-known-item", "scifact", "hotpotqa-pooled500")
TECHNIQUES = ("bm25", "naive", "hybrid")
QUESTIONS, QUICK = 300, 60
DOCUMENTS = 1_500
"""Maximum number of documents of a set, those that answer a question first."""
TYPED = (
    "zzzqqq xyzzy", "asdf jkl qwer", "qwertyuiop asdfghjkl", "blorf snarg wibble", "fgh", "hjkl;", "aaaaaaaa",
    "lkjh 8f7a9 2kq", "how do I blorfgle the snazzwump?", "grmpf tschk vlpt", "dhfjs dhfjs dhfjs", "ñkjh ßdfg",
    "jfkdls; ajfkdls", "wqe rty uio", "0x9f3kq zzkw",
)  # fmt: skip
GIBBERISH = 50
NAMES = re.compile(r"(?<= )[A-Z][\w'-]+")


class Marked(NamedTuple):
    """Whether the results are marked as weak, question by question."""

    answerable: list[bool]
    unanswerable: list[bool]
    others: list[bool]
    gibberish: list[bool]
    follow_ups: list[bool]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"default: {', '.join(SETS)}")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} questions of each set")
    parser.add_argument("--misses", action="store_true", help="print the answerable questions that are marked")
    arguments = parser.parse_args()
    results: dict[str, list[Marked]] = defaultdict(list)
    print(
        "| set | asked | technique | marked: answerable | document removed | other subject | gibberish | dialogue |\n"
        "|---|--:|---|--:|--:|--:|--:|--:|"
    )
    for name in arguments.sets or SETS:
        if not (DATA / name).is_dir():
            sys.exit(f"skipped: {name} is not in {DATA}")
        dataset = read_beir(DATA / name)
        questions = sorted(dataset.qrels)
        random.Random(0).shuffle(questions)
        questions = questions[: QUICK if arguments.quick else QUESTIONS]
        other = read_beir(DATA / ("xquad-en" if name == "scifact" else "scifact"))
        strangers = [other.queries[question] for question in sorted(other.qrels)[: len(questions)]]
        with library_of(name, dataset, questions) as library:
            for technique in TECHNIQUES:
                found = marked(library, dataset, questions, strangers, technique)
                results[technique].append(found)
                print(f"| {name} | {len(questions)} | `{technique}` | {cells(found)} |", flush=True)
                for question, is_marked in zip(questions, found.answerable, strict=True):
                    if is_marked and arguments.misses:
                        print(f"{technique}: {dataset.queries[question]}", file=sys.stderr)
    for technique, of_sets in results.items():
        pooled = Marked(*([is_weak for one in of_sets for is_weak in one[part]] for part in range(5)))
        print(f"| all | {len(pooled.answerable)} | `{technique}` | {cells(pooled)} |")


def cells(found: Marked) -> str:
    """Return the shares."""
    return " | ".join(f"{sum(part) / len(part):.1%}" if part else "" for part in found)


@contextmanager
def library_of(name: str, dataset: Dataset, questions: Sequence[str]) -> Iterator[DocumentService]:
    """Open a library with a chunk for each document."""
    needed = {document for question in questions for document in dataset.qrels[question]}
    corpus = sorted((one for one in dataset.corpus if one.text.strip()), key=lambda one: one.id not in needed)
    texts = {one.id: f"{one.title}\n\n{one.text}".strip() for one in corpus[: max(DOCUMENTS, len(needed))]}
    language = LANGUAGES.get(name, "english")
    with tempfile.TemporaryDirectory() as root, open_workspace(Path(root), language=language) as opened:
        opened.library.create_collection("set")
        vectors = opened.embedder.embed(list(texts.values()))
        opened.store.add_documents(
            [
                EmbeddedChunk(text, metadata(document, number), vector.tolist())
                for number, ((document, text), vector) in enumerate(zip(texts.items(), vectors, strict=True))
            ]
        )
        yield opened.library


def metadata(document: str, number: int) -> dict[str, Any]:
    """Return the metadata of the chunk of a document."""
    return {"collection": "set", "source_file": source_of(document), "source_hash": document, "chunk_index": number}


def source_of(document: str) -> str:
    """Return the page of a section."""
    return document.partition("#")[0]


def marked(
    library: DocumentService, dataset: Dataset, questions: Sequence[str], strangers: Sequence[str], technique: str
) -> Marked:
    """Search for each question, with and without the sources that answer it, for strangers and for gibberish."""

    def is_weak(query: str, without: Sequence[str] = ()) -> bool:
        where = {"source_file": {"$nin": list(without)}} if without else None
        result = library.search(query, technique=technique, where=where)
        return result.weak or not result.documents

    titles = {document.id: document.title for document in dataset.corpus}
    found = Marked([], [], list(map(is_weak, strangers)), list(map(is_weak, gibberish())), [])
    for question in questions:
        query = dataset.queries[question]
        answering = [document for document, grade in dataset.qrels[question].items() if grade > 0]
        found.answerable.append(is_weak(query))
        found.unanswerable.append(is_weak(query, sorted(set(map(source_of, answering)))))
        if follow_up := as_follow_up(query, " ".join(titles[document] for document in answering)):
            result = library.search(follow_up, technique=technique)
            if any(one.metadata["source_hash"] in answering for one in result.documents):
                found.follow_ups.append(result.weak)
    return found


def as_follow_up(query: str, title: str) -> str:
    """Return a question with "it" for the words of its topic; empty if it has none."""
    topic = set(analyse(title or " ".join(NAMES.findall(query)), "english"))
    words: list[str] = []
    for word in query.split():
        terms = set(analyse(word, "english"))
        words.append("it" if terms and terms <= topic else word)
    if "it" not in words or words == query.split():
        return ""
    text = " ".join(word for word, before in zip(words, ["", *words], strict=False) if (word, before) != ("it", "it"))
    return f"And {text[0].lower()}{text[1:]}"


def gibberish() -> list[str]:
    """Return what a person types to see what happens, and words of random letters."""
    chance = random.Random(0)

    def word() -> str:
        return "".join(chance.choices("aeiioubcdfghjklmnpqrstvwxz", k=chance.randint(3, 10)))

    made = [" ".join(word() for _ in range(chance.randint(1, 6))) for _ in range(GIBBERISH - len(TYPED))]
    return [*TYPED, *made]


if __name__ == "__main__":
    main()
