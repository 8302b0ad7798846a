"""Text of any suffix is read from folders and zip files; what is left out is counted by suffix at every door."""

from __future__ import annotations

import base64
import os
import random
import socket
from pathlib import Path
from zipfile import ZipFile

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import SourceError
from ragistry.library.backup import write_backup
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.ingest.report import IngestReport, left_out_line
from ragistry.library.service import DocumentService
from ragistry.readers.extract import extract_text
from tests.conftest import Corpus
from tests.messages import check_message, refused

pytestmark = pytest.mark.usefixtures("embedder")

WORDS = "The pump is checked every spring.\n"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END OPENSSH PRIVATE KEY-----\n"
BINARY = bytes(random.Random(1).choices(range(256), k=2_000))
BASE64 = base64.encodebytes(BINARY * 3)
MINIFIED = "function(e){for(var t=0;t<e.length;t++)n(e[t],t)};" * 40
TEXT: dict[str, str | bytes] = {
    **dict.fromkeys(("README", "LICENSE", "Makefile", "Dockerfile", "app.log", "app.log.1", "a.ini", "b.conf"), WORDS),
    **dict.fromkeys(("c.srt", "d.vtt", "e.bib", "f.text", "g.ics", "h.adoc", "i.css", "j.properties", "k.md "), WORDS),
    **dict.fromkeys(("wide.log", "wide.nfo"), WORDS.encode("utf-16")),
    "unmarked.log": WORDS.encode("utf-16-le"),
    "french.nfo": ("La pompe est vérifiée à chaque été. " * 9).encode("cp850"),
    "colours.log": f"\x1b[31m{WORDS}\x1b[0m",
    "urls.lst": "".join(f"https://example.org/Pumps/Manual{number}/chapter?page=1\n" for number in range(99)),
    "SHA256SUMS": "".join(f"{number:064x}  pumps/manual-of-the-pump-{number}.pdf\n" for number in range(99)),
    "minutes.js": f"// {WORDS}" * 40,
    "one-line.json": '{"pump":"' + "checked every spring " * 99 + '"}',
    "id_list.csv": "id,pump\n1,north\n",
    "credentials.md": WORDS,
    "tls.md": f"{WORDS}\n{KEY}",
    "rfc.txt": WORDS * 99 + KEY,
}
LETTERS = {
    "small": "abcdefghijklmnopqrstuvwxyz",
    "hex": "abcdef",
    "genome": "ACGT",
    "any": "aBcDeFgHiJ",
    "digits": "0123456789",
}
TEXT |= {
    f"{kind}-{width}{suffix}": "pump\n"
    + "\n".join("".join(random.Random(line).choices(letters, k=width)) for line in range(5))
    for kind, letters in LETTERS.items()
    for width in (80, 2_000)
    for suffix in (".txt", ".log", ".csv", ".nfo")
}
LEFT_OUT: dict[str, str | bytes] = {
    **dict.fromkeys(("id_rsa", "id_ed25519_work", "server.key", "credentials", "credentials.json", "_netrc"), WORDS),
    **dict.fromkeys(("prod.env", "notes.txt~"), WORDS),
    "cert.pem": KEY,
    "account.json": '{"type": "x", "private_key": "-----BEGIN RSA PRIVATE KEY-----\\nMII"}',
    "key.txt": KEY,
    **dict.fromkeys(("package-lock.json", "pnpm-lock.yaml", "poetry.lock", "Cargo.lock", "go.sum"), WORDS),
    **dict.fromkeys(("lib.min.js", "site.min.css"), WORDS),
    "bundle.js": MINIFIED,
    "bundle.mjs": MINIFIED,
    "app.js.map": '{"version":3,"sources":["a.ts"],"mappings":"AAAA"}',
    "mail.txt": BASE64,
    "mail.b64": BASE64,
    "dump.hex": BINARY.hex().upper(),
    "icon.svg": "<svg><path d='M1 2'/></svg>",
    "photo.png": b"\x89PNG\r\n\x1a\n" + BINARY,
    "tool": b"\x7fELF\x02\x01\x01" + bytes(500),
    "setup.run": WORDS.encode() * 1_000 + BINARY * 9,
    "archive.gz": b"\x1f\x8b\x08" + BINARY,
    "empty.log": "",
    "huge.log": WORDS * 150_000,
}


def written(folder: Path, files: dict[str, str | bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def packed(path: Path, folder: Path) -> Path:
    with ZipFile(path, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    return path


@pytest.fixture
def both(tmp_path: Path) -> Path:
    return written(tmp_path / "in", TEXT | LEFT_OUT)


@pytest.mark.parametrize("door", ["folder", "zip"])
def test_text_of_any_suffix_is_read_and_the_rest_is_counted(workspace: Workspace, both: Path, door: str) -> None:
    path, prefix = (both, "") if door == "folder" else (packed(both.parent / "in.zip", both), "in.zip/")
    report = workspace.library.ingest_paths([path], "notes")
    assert (report.failed, [line for line in report.warnings if "not UTF-8" not in line]) == ([], [])
    assert {name.removeprefix(prefix).rstrip() for name in report.added} == {name.rstrip() for name in TEXT}
    assert sum(report.left_out.values()) == len(LEFT_OUT)
    assert {".json": 3, ".txt": 2, ".min.js": 1, ".lock": 2, "without suffix": 5}.items() <= report.left_out.items()
    texts = [document.content for document in workspace.store.scan() if "pump" in document.content]
    assert not any("\0" in text or "PRIVATE" in text.partition("spring")[0] for text in texts)


def test_all_text_reads_what_is_text(library: DocumentService, tmp_path: Path) -> None:
    names = ("id_rsa", "package-lock.json", "lib.min.js", "photo.png", "tool", "mail.b64")
    folder = written(tmp_path / "in", {name: LEFT_OUT[name] for name in names})
    report = library.ingest_folder(folder, "notes", all_text=True)
    assert sorted(report.added) == ["id_rsa", "lib.min.js", "mail.b64", "package-lock.json"]
    assert report.left_out == {".png": 1, "without suffix": 1}


@pytest.mark.parametrize("name", ["app.log", "README", "id_rsa", "huge.log"])
def test_a_file_that_is_named_alone_is_read(library: DocumentService, tmp_path: Path, name: str) -> None:
    folder = written(tmp_path / "in", {name: "Steep tea." if name == "huge.log" else (TEXT | LEFT_OUT)[name]})
    assert library.ingest_paths([folder / name], "notes").added == [name]


@pytest.mark.parametrize("name", ["wide.log", "french.nfo", "unmarked.log"])
def test_text_is_read_in_its_encoding(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "in", {name: TEXT[name]}) / name
    assert extract_text(path).startswith(("The pump is", "La pompe est vérifiée à chaque été"))


def test_the_line_has_one_line_of_a_terminal() -> None:
    counts = {".png": 12_345, "without suffix": 678, ".lock": 90, ".map": 12, ".key": 3, ".min.js": 2}
    line = left_out_line(IngestReport(left_out=counts))
    check_message(line, "12,345 .png", "others")
    assert len(f"left out: {line}") <= 80
    assert left_out_line(IngestReport()) == ""
    line = left_out_line(IngestReport(left_out=counts | {".txt": 20}))
    check_message(line, "12,345 .png", "encoded text")
    assert len(f"left out: {line}") <= 80


def test_a_folder_of_encoded_text_says_why_it_has_none(library: DocumentService, tmp_path: Path) -> None:
    folder = written(tmp_path / "in", {"mail.txt": BASE64})
    with refused(SourceError, folder, "1 .txt", "encoded text", "--all-text"):
        library.ingest_folder(folder, "notes")
    assert library.ingest_folder(folder, "notes", all_text=True).added == ["mail.txt"]


def test_the_first_ingest_of_a_known_folder_says_what_was_left_out_before(
    library: DocumentService, tmp_path: Path
) -> None:
    folder = written(tmp_path / "in", {"tea.md": WORDS, "a.log": WORDS, "b.log": WORDS, "README": WORDS})
    library.ingest_paths([folder / "tea.md"], "notes")
    written(folder, {"x.png": BINARY, "today.log": WORDS})
    planned: list[str] = []

    class Observer(IngestObserver):
        def planned(self, report: IngestReport) -> None:
            assert library.list_sources("notes") == ["tea.md"], "it is told before the first source is written"
            planned.extend(report.warnings)

    report = library.ingest_paths([folder], "notes", observer=Observer())
    assert (len(report.added), planned) == (4, report.warnings)
    check_message(planned[0], folder, "2 .log, 1 without suffix")
    written(folder, {"c.log": WORDS, "d.ini": WORDS})
    assert library.ingest_folder(folder, "notes").warnings == [], "it is told once"


def test_a_file_that_was_written_after_the_last_ingest_is_announced_by_none(
    library: DocumentService, tmp_path: Path
) -> None:
    folder, old = written(tmp_path / "in", {"tea.md": WORDS}), written(tmp_path / "old", {"old.log": WORDS})
    os.utime(old / "old.log", (0, 0))
    library.ingest_folder(folder, "notes")
    (old / "old.log").rename(folder / "old.log")
    written(folder, {"a.log": WORDS, "README": WORDS})
    report = library.ingest_folder(folder, "notes")
    assert (len(report.added), report.warnings) == (3, [])


def test_a_source_that_is_no_longer_read_is_named(library: DocumentService, tmp_path: Path) -> None:
    folder = written(tmp_path / "in", {"tea.md": WORDS, "package-lock.json": WORDS})
    library.ingest_folder(folder, "notes", all_text=True)
    report = library.ingest_folder(folder, "notes", prune=True)
    check_message(report.warnings[0], folder, "'package-lock.json'")
    assert (report.deleted, report.vanished) == ([], [])


def test_files_of_a_store_and_sockets_are_no_text(library: DocumentService, tmp_path: Path) -> None:
    folder = written(tmp_path / "in", {"lock.md": WORDS, "lock": "", "lock.holder": WORDS, "reserve": WORDS})
    written(folder, {"store.db": WORDS, "store.db-wal": WORDS, "locks": WORDS})
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
        report = library.ingest_folder(folder, "notes")
    assert (report.added, report.failed, report.left_out) == (["lock.md", "locks"], [], {"without suffix": 1})


def test_a_backup_and_packed_configuration_are_not_ingested(tmp_path: Path, corpus: Corpus) -> None:
    folder = corpus({"docs/tea.md": WORDS, "config/models.yaml": "generators:\n  w: {use: ollama, model: m}\n"})
    with ZipFile(folder / "docs" / "packed.zip", "w") as archive:
        archive.write(folder / "config" / "models.yaml", "config/models.yaml")
        archive.writestr("rain.md", "Rain.")
    with open_workspace(folder) as workspace:
        workspace.library.create_collection("notes")
        workspace.library.ingest_text("Rain.", "rain.txt", "notes")
        write_backup(folder / "docs" / "library.zip", folder, workspace.store, folder / ".ragistry" / "repositories")
        report = workspace.library.ingest_folder(folder / "docs", "notes")
    assert (report.added, report.failed) == (["packed.zip/rain.md", "tea.md"], [])
