# ruff: noqa: RUF001 - letters of other scripts are what is tested
from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragistry.text.detection import Detected, detect_language, language_warnings
from tests.messages import check_message

SENTENCES = {
    "en": "The library keeps its collections in one file, and every search reads a consistent state of it. ",
    "de": "Die Bibliothek speichert ihre Sammlungen in einer Datei, und jede Suche liest einen festen Stand. ",
    "no": "Biblioteket lagrer samlingene sine i én fil, og hvert søk leser en tilstand som ikke endrer seg. ",
    "pl": "Biblioteka przechowuje swoje zbiory w jednym pliku, a każde wyszukiwanie czyta spójny stan. ",
    "tr": "Kütüphane koleksiyonlarını tek bir dosyada saklar ve her arama tutarlı bir durumu okur. ",
    "zh": "图书馆把所有的收藏保存在一个文件里，每次搜索都会读到一个一致的状态。",
    "ja": "ライブラリはコレクションを一つのファイルに保存し、検索のたびに一貫した状態を読み取ります。",
}
CODE = """```python
def der_die_das(und, oder):
    return und.nicht(oder, 12)
```
"""


@pytest.mark.parametrize("code", SENTENCES)
def test_the_language_of_prose_is_detected(code: str) -> None:
    detected = detect_language([SENTENCES[code] * 3])
    assert detected is not None
    assert detected.language == code
    assert 0.6 <= detected.certainty <= 1


def data_texts(folder: Path) -> list[str]:
    return [json.loads(line)["text"] for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("code", ["en", "de", "es", "zh"])
def test_the_language_of_a_collection_is_detected(data: Path, code: str) -> None:
    detected = detect_language(data_texts(data / f"xquad-{code}"))
    assert detected is not None
    assert detected.language == code


@pytest.mark.parametrize("tree", ["docs-etcd", "docs-hugo"])
@pytest.mark.parametrize("size", [500, 1_000, 100_000])
def test_english_reference_pages_are_never_taken_for_another_language(data: Path, tree: str, size: int) -> None:
    pages = [path.read_text(encoding="utf-8") for path in sorted((data / tree).rglob("*.md"))]
    chunks = [page[start : start + size] for page in pages for start in range(0, len(page), size)]
    found = [detect_language(chunks[start : start + 3]) for start in range(0, len(chunks), 3)]
    assert {detected.language for detected in found if detected} == {"en"}
    assert detect_language(chunks) is not None


@pytest.mark.parametrize(
    "texts", [[], [""], ["short"], [CODE * 20], ["1 2 3 0x7f " * 200], ["https://example.org/die-und-das " * 50]]
)
def test_too_little_prose_has_no_language(texts: list[str]) -> None:
    assert detect_language(texts) is None


def test_half_and_half_is_not_clear() -> None:
    assert detect_language([SENTENCES["en"], SENTENCES["de"]] * 20) is None


def test_code_in_prose_does_not_count() -> None:
    detected = detect_language([f"{SENTENCES['en'] * 2}\n{CODE * 8}\n{SENTENCES['en']}"])
    assert detected is not None
    assert detected.language == "en"


def test_the_same_texts_have_the_same_answer() -> None:
    texts = [SENTENCES["en"], SENTENCES["pl"], SENTENCES["en"]] * 30
    assert detect_language(texts) == detect_language(texts)


@pytest.mark.parametrize(
    ("code", "language", "model", "remedies"),
    [
        ("en", "en", "minilm", []),
        ("de", "german", "multilingual", []),
        (None, "english", "minilm", []),
        ("de", "english", "minilm", ["language: german, or language: auto", "embed_model: multilingual"]),
        ("uk", "english", "multilingual", ["language: none"]),
        ("en", "german", "multilingual", ["language: english"]),
        ("zh", "english", "multilingual", []),
        ("de", "none", "multilingual", []),
        ("de", "auto", "multilingual", []),
    ],
)
def test_settings_that_do_not_fit_are_named_with_their_remedy(
    code: str | None, language: str, model: str, remedies: list[str]
) -> None:
    detected = Detected(code, 1.0) if code else None
    warnings = language_warnings(detected, language=language, embed_model=model, english_model=model == "minilm")
    assert len(warnings) == len(remedies)
    for warning, remedy in zip(warnings, remedies, strict=True):
        check_message(warning, remedy)
