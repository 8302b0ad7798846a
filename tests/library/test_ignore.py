"""Which files of a folder are ignored: as git decides it, and by patterns of the user and names of folders."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import SourceError
from ragistry.library.ingest.folder import list_folder
from ragistry.library.ingest.ignore import Rules
from tests.conftest import Corpus, everywhere
from tests.library.shelf import PIPE, Content, Shelf, Step, step

pytestmark = pytest.mark.usefixtures("embedder")

PIECES = (
    *[
        "a",
        "b",
        "ab",
        "*",
        "**",
        "?",
        "/",
        "/",
        "/",
        "!",
        "\\",
        ".",
        " ",
        "x.md",
        "*.md",
        "#",
        "é",
        "***",
        "\t",
        "+",
        "{",
    ],
    *["[ab]", "[!a]", "[^b-c]", "[[:alpha:]]", "[]a]", "[a\\]]", "[z-a]", "[", "]", "[/]", "[a/]", "[--b]", "[[:x]"],
    *["[]-b]", "[!]", "[\\]", "[a-\\c]", "[\\a-c]", "[[:alpha:]", "[[:foo:]]"],
)
NAMES = (
    "a",
    "b",
    "ab",
    "z",
    "c",
    "x.md",
    "a.md",
    "a b",
    "b ",
    "é",
    "]",
    "[",
    "a-b",
    "\\",
    "!a",
    "#",
    "a\n",
    "*",
    "+",
    "a\t",
)
LINE_ENDS = ("\n", "\r\n", " \n", "  \r\n", "\n\n")


def git(folder: Path, *words: str) -> list[str]:
    command = ["git", "-C", str(folder), "-c", "core.excludesFile=", *words]
    return [
        os.fsdecode(one) for one in subprocess.run(command, check=True, capture_output=True).stdout.split(b"\0") if one
    ]


def ignored_by_git(folder: Path) -> set[str]:
    return {*git(folder, "ls-files", "--others", "--ignored", "--exclude-standard", "-z")}


def is_ignored(folder: Path) -> bool:
    words = ["git", "-C", str(folder.parent), "check-ignore", "-q", f"./{folder.name}"]
    return subprocess.run(words, check=False).returncode == 0


def visible(folder: Path) -> set[str]:
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {name for name in names if not name.startswith(".") and "/." not in name}


def but_one(parts: Sequence[str], drawn: random.Random) -> list[str]:
    """Write patterns for all that is in a folder, and for one path that is kept there."""
    *folders, name = parts[: drawn.randint(1, len(parts))]
    within = "/".join(["", *(drawn.choice((one, one, "*", "**")) for one in folders)])[drawn.randint(0, 1) :]
    return [f"{within}/{drawn.choice(('*', '*', '**', '*/'))}", f"!{within}/{drawn.choice((name, f'{name}/', '*/'))}"]


def grown(root: Path, drawn: random.Random) -> None:
    """Write a random tree with files of patterns, the first one with a mark of its encoding."""
    git(root, "init", "-q")
    for _ in range(60):
        path = root.joinpath(*drawn.choices(NAMES, k=drawn.randint(1, 4)))
        if not any(parent.is_file() for parent in path.parents) and not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("Steep the tea.")
    folders = [
        root,
        *drawn.sample(sorted(path for path in root.rglob("*") if path.is_dir() and ".git" not in path.parts), 3),
    ]
    for folder in folders:
        below = sorted(path.relative_to(folder).parts for path in folder.rglob("*") if ".git" not in path.parts)
        lines = ["".join(drawn.choices(PIECES, k=drawn.randint(1, 6))) for _ in range(drawn.randint(1, 5))]
        lines += [line for _ in range(drawn.randint(0, 3)) for line in but_one(drawn.choice(below), drawn)]
        text = "".join(line + drawn.choice(LINE_ENDS) for line in lines)
        (folder / ".gitignore").write_bytes(b"\xef\xbb\xbf" * (folder == root) + text.encode())
    (root / ".git" / "info" / "exclude").write_text("".join(drawn.choices(PIECES, k=3)) + "\n")


@pytest.mark.parametrize("seed", range(30))
def test_a_folder_is_listed_as_git_lists_it(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    grown(tmp_path, drawn)
    ignored = ignored_by_git(tmp_path)
    folders = sorted(path for path in tmp_path.iterdir() if path.is_dir() and path.name != ".git")
    for folder in (tmp_path, *drawn.sample(folders, 2)):
        start = "" if folder == tmp_path else f"{folder.name}/"
        listing = list_folder(folder)
        expected = {one.removeprefix(start) for one in ignored if one.startswith(start)}
        if start and is_ignored(folder):  # only the rules in it count, because it was named
            git(folder, "init", "-q")
            expected = ignored_by_git(folder)
        assert {file.source_file for file in listing.files} == visible(folder) - expected
        assert listing.counts.total() == len(visible(folder) & expected)


LONG, EMOJI, NFD = "n" * 252 + ".md", "\N{HOT BEVERAGE}", "e\N{COMBINING ACUTE ACCENT}.md"
IGNORED = "ignored by .gitignore"
LISTED: dict[str, tuple[dict[str, Content], dict[str, object], str, dict[str, int]]] = {
    "rules of .ignore win": (
        {".ignore": "!keep.md", "sub/.gitignore": "*.md", "sub/keep.md": "", "sub/b.md": ""},
        {}, "sub/keep.md", {IGNORED: 1},
    ),
    "folders that programs fill": (
        {
            "node_modules/a/b.md": "", "node_modules/c.png": "", "a/__pycache__/b.md": "", "dist/a.md": "",
            "target/a.md": "", "app/pom.xml": "", "app/target/b.md": "", "lib/package.json": "", "lib/dist/.b.md": "",
            "lib/dist/b.md": "", ".venv/a.md": "", "a/.tox/.b.md": "", "a/.tox/c.md": "", ".other/a.md": "",
        },
        {}, "app/pom.xml dist/a.md lib/package.json target/a.md",
        {"in node_modules": 2, "in __pycache__": 1, "in target": 1, "in dist": 1, "in .venv": 1, "in .tox": 1},
    ),
    "a rule reads such a folder": (
        {".ignore": "!dist", "package.json": "", "dist/a.md": ""}, {}, "dist/a.md package.json", {},
    ),
    "a repository has its own rules": (
        {".gitignore": "*.md", "sub/.git": "gitdir: x", "sub/a.md": "", "b.md": ""}, {}, "sub/a.md", {IGNORED: 1},
    ),
    "patterns of the user come first": (
        {".ignore": "a.md", "a.md": "", "b.md": "", "#c.md": ""}, {"exclude": ["b*", "#c.md", "", "!a.md"]}, "a.md",
        {"ignored by --exclude": 2},
    ),
    "a folder is not what is in it": (
        {
            ".gitignore": "docs/tmp/*\n!docs/tmp/keep.md\n/in/*\n!/in/keep/", "docs/tmp/a.md": "",
            "docs/tmp/keep.md": "", "in/keep/a.md": "", "in/b.md": "", "a/out/keep.md": "", "a/out/b.md": "",
        },
        {"exclude": ["*/out/*", "!*/out/keep.md"]}, "a/out/keep.md docs/tmp/keep.md in/keep/a.md",
        {IGNORED: 2, "ignored by --exclude": 1},
    ),
    "all files are read": (
        {".gitignore": "*", "node_modules/a.md": "", ".venv/a.md": "", "b.md": ""},
        {"all_files": True, "exclude": ["b.md"]},
        ".venv/a.md b.md node_modules/a.md", {},
    ),
    "a folder of rules and a pipe have none": (
        {".gitignore/a.md": "", ".ignore": PIPE, "sub/.gitignore": Path("../b.md"), "sub/*": "", "b.md": "*"},
        {}, "b.md sub/*", {},
    ),
    "rules in any encoding": (
        {".gitignore": "caf\xe9.md\n".encode("latin-1") + bytes(range(256)) * 9, "caf\xe9.md": ""},
        {}, "caf\xe9.md", {},
    ),
    "names of any length and letters": (
        {".gitignore": f"{LONG}\n{EMOJI}/\n\xe9.md", LONG: "", f"{EMOJI}/a.md": "", NFD: "", EMOJI * 9: ""},
        {}, f"{NFD} {EMOJI * 9}", {IGNORED: 2},
    ),
    "loops of links": (
        {".gitignore": "up\nsub/a.md", "up": Path(), "sub/up": Path(".."), "sub/a.md": Path("a.md"), "a.md": ""},
        {"follow_links": True}, "a.md", {IGNORED: 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LISTED)
def test_a_folder_is_listed_without_what_is_ignored(shelf: Shelf, case: str) -> None:
    files, options, names, counts = LISTED[case]
    shelf.write({name: content or "Steep the tea." for name, content in files.items()})
    listing = list_folder(shelf.root, **options)  # type: ignore[arg-type]
    assert ([file.source_file for file in listing.files], listing.counts) == (sorted(names.split()), counts)
    assert (listing.special, listing.failed, listing.links) == ([], [], [])


TEA: dict[str, Content] = {"tea.md": "Tea", "build/a.md": "A", "build/b.md": "B"}
CASES: dict[str, tuple[Step, ...]] = {
    "a source that becomes ignored stays until its file is gone": (
        step(TEA, added="build/a.md build/b.md tea.md"),
        step({".gitignore": "build/"}, prune=True, skipped="tea.md", left_out=2, warnings=1),
        step({".gitignore": "*"}, prune=True, left_out=3, warnings=1),
        step({"build/a.md": None}, prune=True, refused=SourceError),
        step({".ignore": "!tea.md"}, prune=True, skipped="tea.md", deleted="build/a.md", left_out=1, warnings=1),
        step(all_files=True, skipped="build/b.md tea.md"),
    ),
    "a folder without another file is refused": (step(TEA | {".gitignore": "*"}, refused=SourceError),),
    "what is named by itself is read": (
        step(TEA | {".gitignore": "build\n*.md", "rain.txt": "Rain"}, "", "build", "tea.md",
             added="a.md b.md rain.txt tea.md", left_out=3),
        step({".git/HEAD": "", ".gitignore": "build"}, "build", skipped="a.md b.md"),
        step({"build/.gitignore": "/a.md"}, "build", skipped="b.md", left_out=1, warnings=1),
    ),
    "rules that cannot be read are reported": (
        step({".gitignore": b"*\n" * 600_000, "a.md": "A"}, added="a.md", failed=".gitignore"),
        step({"b.md": "B"}, denied={"stat": ".gitignore"}, added="b.md", skipped="a.md", failed=".gitignore"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_ignored_files_are_counted_and_none_is_deleted(shelf: Shelf, case: str) -> None:
    shelf.play(*CASES[case])


def test_changed_rules_are_followed(shelf: Shelf) -> None:
    shelf.play(step(TEA | {".gitignore": "build"}, added="tea.md", left_out=2))
    shelf.write({"build/.gitignore": "b.md", ".gitignore": ""})
    changed = [str(shelf.root / ".gitignore")]
    shelf.play(step({"build/.gitignore": "b.md"}, changed=changed, added="build/a.md", skipped="tea.md", left_out=1))


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 100 + "b",
        "**/a/" * 50 + "b",
        "**/*a*a/" * 50 + "b",
        "[" * 100_000,
        "[" * 4_000,
        "[a" * 2_000,
        "[" + "[:" * 2_000 + "]",
    ],
)
def test_every_pattern_ends_in_time(pattern: str) -> None:
    for path in ("a" * 255, "a/" * 2_000 + "c", ("a" * 99 + "/") * 40):
        assert not Rules([pattern], "", 0).ignores(path, "")


def test_patterns_are_kept_with_a_folder_until_others_are_given(shelf: Shelf) -> None:
    shelf.play(
        step(TEA, exclude=["build/", "*.log"], added="tea.md", left_out=2),
        step({"a.log": "A"}, prune=True, skipped="tea.md", left_out=3),
        step(all_files=True, added="a.log build/a.md build/b.md", skipped="tea.md"),
        step(prune=True, skipped="tea.md", left_out=3, warnings=1),
        step(exclude=[""], skipped="a.log build/a.md build/b.md tea.md"),
        step(exclude="*", left_out=4, warnings=1),
    )


@everywhere
def test_patterns_are_kept_by_every_store_that_can(
    workspace: Any, corpus: Corpus, request: pytest.FixtureRequest
) -> None:
    folder, library = corpus({"tea.md": "Tea", "draft.md": "Draft", "a.log": "Log"}), workspace.library
    keeps = "chroma" not in request.node.name
    for exclude, names, lines in (
        (["draft*", "*.log"], "tea.md", not keeps),
        (None, "tea.md" if keeps else "a.log draft.md tea.md", 0),
        ("*.log", "draft.md tea.md", not keeps),
        ([], "a.log draft.md tea.md", 0),
    ):
        report = library.ingest_folder(folder, "notes", exclude=exclude)
        assert sorted(report.added + report.skipped) == names.split()
        assert sum("--exclude" in line for line in report.warnings) == lines
