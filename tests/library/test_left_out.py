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
from ragistry.readers.extract import extract_text
from tests.conftest import Corpus
from tests.library.shelf import Shelf, Step, step
from tests.messages import check_message

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
    counts = {"credentials": 10, ".json": 1, ".txt": 1, ".min.js": 1, ".lock": 2, "without suffix": 1}
    assert counts.items() <= report.left_out.items()
    texts = [document.content for document in workspace.store.scan() if "pump" in document.content]
    assert not any("\0" in text or "PRIVATE" in text.partition("spring")[0] for text in texts)


KEYS = {name: LEFT_OUT[name] for name in ("id_rsa", "package-lock.json", "lib.min.js", "mail.txt", "photo.png", "tool")}
CASES: dict[str, tuple[Step, ...]] = {
    "all files are read": (
        step(KEYS, all_files=True, added="id_rsa package-lock.json lib.min.js mail.txt", left_out=2),
    ),
    "a file that is named alone is read": (
        step({"app.log": WORDS, "README": WORDS, "id_rsa": WORDS, "huge.log": "Steep tea."}, "README", added="README"),
        step({}, "app.log", "id_rsa", "huge.log", added="app.log huge.log id_rsa"),
    ),
    "a folder of encoded text says why it has none": (
        step({"mail.txt": BASE64}, refused=SourceError),
        step(all_files=True, added="mail.txt"),
    ),
    "the first ingest of a known folder says what was left out before": (
        step({"tea.md": WORDS, "a.log": WORDS, "b.log": WORDS, "README": WORDS}, "tea.md", added="tea.md"),
        step({"x.png": BINARY}, added="README a.log b.log", skipped="tea.md", left_out=1, warnings=1),
        step({"c.log": WORDS}, added="c.log", skipped="README a.log b.log tea.md", left_out=1),
    ),
    "a file that was written after the last ingest is announced by none": (
        step({"in/tea.md": WORDS, "old.log": WORDS}, "in", added="tea.md"),
        step({"in/a.log": WORDS, "in/README": WORDS}, "in", added="README a.log", skipped="tea.md"),
    ),
    "a source that is no longer read is named": (
        step({"tea.md": WORDS, "package-lock.json": WORDS}, all_files=True, added="package-lock.json tea.md"),
        step(prune=True, skipped="tea.md", left_out=1, warnings=1),
    ),
    "files of a store are no text": (
        step({"store.db": WORDS, "lock": "", "reserve": WORDS, "lock.md": WORDS}, added="lock.md"),
        step({"store.db-wal": WORDS, "lock.holder": WORDS, "locks": WORDS}, added="locks", skipped="lock.md"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_left_out_is_reported(shelf: Shelf, case: str) -> None:
    shelf.play(*CASES[case])


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
    check_message(line, "12,345 .png", "--all")
    assert len(f"left out: {line}") <= 80
    line = left_out_line(
        IngestReport(left_out=counts | {"in dist": 1, "ignored by .gitignore": 2, "in node_modules": 3})
    )
    check_message(line, "3 in node_modules, 2 ignored by .gitignore, 1 in dist, 13,130 others")


def test_what_was_left_out_before_is_told_before_the_first_source_is_written(shelf: Shelf) -> None:
    planned: list[int] = []

    class Observer(IngestObserver):
        def planned(self, report: IngestReport) -> None:
            planned.extend([len(report.warnings), len(shelf.held())])

    shelf.play(
        step({"tea.md": WORDS, "a.log": WORDS}, "tea.md", added="tea.md"),
        step(observer=Observer(), added="a.log", skipped="tea.md", warnings=1),
    )
    assert planned == [1, 1]


def test_a_moved_file_is_older_than_its_move_and_a_socket_is_no_text(shelf: Shelf) -> None:
    shelf.play(step({"in/tea.md": WORDS, "old.log": WORDS}, "in", added="tea.md"))
    os.utime(shelf.root / "old.log", (0, 0))
    (shelf.root / "old.log").rename(shelf.root / "in" / "old.log")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(shelf.root / "in" / "s"))
        shelf.play(step({}, "in", added="old.log", skipped="tea.md", left_out=1))


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
