"""Collections and sources in a browser: every flow as a visitor goes through it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest
from playwright.sync_api import Page, expect

from ragistry import Workspace, open_workspace
from ragistry.library.ingest.source import SourceBytes
from tests.web.conftest import check_accessibility, complaint, upload

HOSTILE = "<img src=x onerror=alert(1)>.md"
Make = Callable[..., str]


def keep_upload(other: Workspace, name: str, content: str, collection: str, folder: str = "") -> Path:
    """Ingest a file from where the page keeps files that were dropped on it."""
    place = other.root / ".ragistry" / "uploads" / (folder or f"of-{collection}") / name
    place.parent.mkdir(parents=True)
    place.write_text(content)
    other.library.ingest_file(place, collection)
    return place


def test_list_collections_with_links_to_their_sources(page: Page) -> None:
    page.goto("/collections")
    row = page.get_by_role("row", name="Handbook")
    expect(row).to_contain_text("5")
    expect(row).to_contain_text("Operations handbook")
    expect(page.get_by_role("row")).to_have_count(1 + 3)
    page.get_by_text("Operations handbook").click(force=True)  # the link of the name lies over it
    expect(page.get_by_role("row", name="operations/backups.md")).to_be_visible()


def test_add_fill_rename_and_delete_a_collection(
    page: Page, other: Workspace, collection: Make, tmp_path: Path
) -> None:
    page.goto("/collections")
    page.get_by_role("button", name="Add collection").click()
    page.get_by_label("Name", exact=True).fill("???")
    page.get_by_label("Description").fill("Notes of the lab")
    page.get_by_role("button", name="Add", exact=True).click()
    complaint(page, "'???'")
    page.get_by_label("Name", exact=True).fill("lab")  # what was typed stays until it is accepted
    page.get_by_label("Name", exact=True).press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("lab")
    expect(page.get_by_text("This collection has no sources yet.")).to_be_visible()
    (tmp_path / "rotor.md").write_text("# Rotor\n\nThe rotor spins at nine thousand turns.\n")
    upload(page, tmp_path / "rotor.md")
    expect(page.get_by_role("row", name="rotor.md")).to_be_visible()
    [kept] = (other.root / ".ragistry" / "uploads").glob("*/rotor.md")
    description = page.get_by_label("Description", exact=True)
    expect(description).to_have_value("Notes of the lab")
    description.fill("What the lab measured")
    page.get_by_role("button", name="Save description").click()
    expect(page.get_by_text("Description saved")).to_be_visible()
    page.goto("/collections")
    expect(page.get_by_role("row", name="lab")).to_contain_text("What the lab measured")
    page.get_by_role("button", name="Edit lab").click()
    page.get_by_label("Name", exact=True).fill("bench")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name="bench")).to_contain_text("What the lab measured")
    assert other.library.list_sources("bench") == ["rotor.md"]
    for answer in ("Cancel", "Delete"):
        page.get_by_role("button", name="Delete bench").click()
        # By its name: the dialog before it fades out.
        asked = page.get_by_role("dialog", name="Delete bench?")
        expect(asked).to_contain_text("1 source with 1 chunk is deleted with it")
        expect(asked).to_contain_text("Your files stay, except copies that were uploaded here.")
        expect(page.get_by_role("row", name="bench")).to_be_visible()
        assert kept.exists()
        asked.get_by_role("button", name=answer, exact=True).click()
        expect(asked).to_have_count(0)  # a dialog that fades out has the name of the next one
    expect(page.get_by_role("row", name="bench")).to_have_count(0)
    assert "bench" not in [item["name"] for item in other.library.list_collections()]
    assert not kept.exists()


@pytest.mark.slow
def test_dialog_works_with_the_keyboard_only(page: Page, collection: Make) -> None:
    page.goto("/collections")
    page.get_by_role("button", name="Add collection").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("typed")
    page.goto("/collections")
    page.get_by_role("button", name="Delete typed").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Delete typed")).to_be_focused()
    expect(page.get_by_role("row", name="typed")).to_be_visible()


def test_move_asks_before_it_replaces_a_source_and_says_which_files_go(
    page: Page, other: Workspace, collection: Make
) -> None:
    files = [keep_upload(other, "twin.md", f"The text of {name}.\n", collection(name)) for name in ("from", "onto")]
    shared = keep_upload(other, "shared.md", "A text of two collections.\n", "from", "of-both")
    other.library.ingest_file(shared, "onto")
    page.goto("/collection/from")
    for name, answer, fate, left in (
        ("twin.md", "Cancel", "The uploaded copy of the file is deleted too.", [True, True]),
        ("twin.md", "Replace", "The uploaded copy of the file is deleted too.", [True, False]),
        ("shared.md", "Replace", "The file stays.", [True, False]),
    ):
        page.get_by_role("button", name=f"Move {name} to another collection").click()
        page.get_by_role("button", name="onto", exact=True).click()
        asked = page.get_by_role("dialog", name=f"Replace {name} in onto?")
        expect(asked).to_contain_text(f"1 chunk is deleted. {fate}")
        asked.get_by_role("button", name=answer).click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        if answer == "Replace":
            expect(page.get_by_text(f"{name}: 1 chunk moved to onto")).to_be_visible()
            expect(page.get_by_role("row", name=name)).to_have_count(0)
        assert [file.exists() for file in files] == left
    assert shared.exists()
    assert (other.library.list_sources("from"), other.library.list_sources("onto")) == ([], ["shared.md", "twin.md"])
    assert "The text of from." in [one.content for one in other.search("text", collection="onto").documents]


def test_upload_and_replace_files(page: Page, collection: Make, tmp_path: Path) -> None:
    page.goto(f"/collection/{collection('dropped')}")
    dropped = page.evaluate_handle(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(["# One\\n\\nThe first."], "one.md"));
            data.items.add(new File(["# Two\\n\\nThe second."], "two.md"));
            return data;
        }"""
    )
    page.get_by_role("region", name="Add files").dispatch_event("drop", {"dataTransfer": dropped})
    expect(page.get_by_role("row", name="one.md")).to_be_visible()
    expect(page.get_by_role("row", name="two.md")).to_be_visible()
    (tmp_path / "one.md").write_text("Second version.\n")
    upload(page, tmp_path / "one.md")
    complaint(page, "not added", "tick Replace")
    page.get_by_text("Replace sources of the same name").click()
    for times in (1, 2):  # the same file can be added again
        upload(page, tmp_path / "one.md")
        expect(page.get_by_text("1 updated")).to_have_count(times)


def test_invalid_files_are_reported_and_valid_ones_added(
    page: Page, other: Workspace, collection: Make, tmp_path: Path
) -> None:
    page.goto(f"/collection/{collection('mixed')}")
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.md").write_text(f"The text of folder {folder}.\n" * len(list(tmp_path.iterdir())))
    upload(page, tmp_path / "one" / "same.md", tmp_path / "two" / "same.md")
    lines = page.get_by_role("status", name="Ingests").locator(".rg-file")
    expect(lines).to_have_text(
        [re.compile("same.md.*searchable"), re.compile("same.md.*not added: a file of this name")]
    )
    expect(page.get_by_text("1 added, 1 not added")).to_be_visible()
    assert "folder one" in other.search("text", collection="mixed").documents[0].content
    (tmp_path / "photo.png").write_bytes(b"PNG")
    upload(page, tmp_path / "photo.png")
    complaint(page, "not added", ".png")
    with (tmp_path / "large.md").open("wb") as large:
        large.truncate(201_000_000)
    upload(page, tmp_path / "large.md")
    complaint(page, "201 MB", "200 MB")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (tmp_path / "good.md").write_text("Good.\n")
    (tmp_path / HOSTILE).write_text("# <script>alert(1)</script>\n\nHostile <b>rotor</b>.\n")
    upload(page, tmp_path / "broken.pdf", tmp_path / "good.md", tmp_path / HOSTILE)
    expect(page.get_by_text("2 added, 1 failed")).to_be_visible()
    missing = page.get_by_role("region", name="Not searchable").get_by_role("row", name="broken.pdf")
    expect(missing).to_contain_text("failed: 'broken.pdf' is damaged or no PDF")
    taken = page.get_by_role("status", name="Ingests")
    expect(taken.locator(".rg-file", has_text="broken.pdf")).to_contain_text("failed: 'broken.pdf' is damaged")
    expect(taken.locator(".rg-file", has_text="good.md")).to_contain_text("searchable")
    expect(page.get_by_role("row", name=HOSTILE)).to_be_visible()
    page.reload()
    expect(page.get_by_text("2 added, 1 failed")).to_be_visible()
    page.goto("/?q=hostile+rotor&collection=mixed")
    first = page.get_by_role("article").first
    expect(first).to_contain_text("Hostile rotor")
    expect(first).to_contain_text(HOSTILE)
    assert first.locator("img, script, b").count() == 0


@pytest.mark.slow
def test_refused_files_are_lines_of_the_list(page: Page, collection: Make, tmp_path: Path) -> None:
    page.goto(f"/collection/{collection('photos')}")
    names = [*(f"photo{number}.jpg" for number in range(12)), "program", "tea.md", "moss.txt"]
    for name in names:
        (tmp_path / name).write_text(f"The text of {name}.\n")
    upload(page, *(tmp_path / name for name in names))
    ingests = page.get_by_role("status", name="Ingests")
    expect(ingests.locator(".rg-job")).to_have_count(2)
    refused = ingests.locator(".rg-file", has_text="not added")
    expect(refused).to_have_count(12)
    expect(refused.first).to_contain_text("photo0.jpg")
    expect(refused.first).to_contain_text("not added: .jpg is not a supported format")
    expect(ingests.get_by_text("3 added")).to_be_visible()
    expect(page.locator(".q-notification")).to_have_count(0)
    check_accessibility(page)
    page.get_by_role("button", name="Dismiss 12 files").click()
    expect(refused).to_have_count(0)


@pytest.mark.slow
def test_zip_file_is_read_as_a_folder(page: Page, collection: Make, tmp_path: Path) -> None:
    page.goto(f"/collection/{collection('zipped')}")
    with ZipFile(tmp_path / "papers.zip", "w") as made:
        made.writestr("2024/tea.md", "# Tea\n\nSteep for two minutes.\n")
        made.writestr("otters.txt", "Otters swim in rivers.\n")
        made.writestr("broken.pdf", b"%PDF-1.4 nothing")
        made.writestr("photo.jpg", b"no text")
    (tmp_path / "plain.md").write_text("Plain.\n")
    upload(page, tmp_path / "papers.zip", tmp_path / "plain.md")
    ingests = page.get_by_role("status", name="Ingests")
    expect(ingests.locator(".rg-file", has_text="papers.zip")).to_contain_text("searchable: 2 added, 1 failed")
    complaint(page, "'papers.zip/broken.pdf' is damaged")
    expect(page.get_by_role("row", name="papers.zip/2024/tea.md")).to_be_visible()
    upload(page, tmp_path / "papers.zip")
    complaint(page, "tick Replace")


def test_add_a_folder_inside_the_roots_only(page: Page, collection: Make, root: Path) -> None:
    page.goto(f"/collection/{collection('folder')}")
    inside = root.parent / "papers"
    inside.mkdir()
    for number in range(300):
        (inside / f"{number:03}.md").write_text(f"Paper of number {number}.\n")
    (inside / "photo.jpg").write_bytes(b"JPG")
    box = page.get_by_label("Folder on this machine")
    box.fill("/etc")
    page.get_by_role("button", name="Add folder").click()
    complaint(page, "/etc", "--root")
    box.fill(str(inside))
    page.get_by_role("button", name="Add folder").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.reload()  # what is being taken in is shown afterwards, too
    expect(page.get_by_text("of 300")).to_be_visible()
    expect(page.get_by_role("row", name="000.md")).to_be_visible()
    expect(page.get_by_text(f"left out of {inside}: 1 .jpg")).to_be_visible()


@pytest.mark.slow
def test_unsaved_description_is_not_overwritten(page: Page, other: Workspace, collection: Make) -> None:
    page.goto(f"/collection/{collection('described', 'At first')}")
    field = page.get_by_label("Description", exact=True)
    expect(field).to_have_value("At first")
    other.library.update_description("described", "By another")
    expect(field).to_have_value("By another")
    field.fill("Half a sent")
    page.get_by_label("Folder on this machine").fill("/etc")
    page.get_by_role("button", name="Add folder").click()
    complaint(page, "/etc")  # then what was typed before has arrived, too
    other.library.update_description("described", "By a third")
    other.library.ingest_text("A text.", "marker", "described")
    expect(page.get_by_role("row", name="marker")).to_be_visible()
    expect(field).to_have_value("Half a sent")


def test_changes_by_another_program_are_shown(page: Page, other: Workspace, collection: Make) -> None:
    page.goto("/collections")
    collection("elsewhere", "Made by another process")
    expect(page.get_by_role("row", name="elsewhere")).to_be_visible()
    page.goto("/collection/elsewhere")
    other.library.ingest_text("A text.", "text", "elsewhere")
    expect(page.get_by_role("row", name="text")).to_be_visible()
    other.library.ingest_paths([SourceBytes(b"%PDF", "contract.pdf"), SourceBytes(b"", "empty.md")], "elsewhere")
    expect(page.get_by_text("2 files are not searchable")).to_be_visible()
    expect(page.get_by_role("row", name="contract.pdf failed: ")).to_be_visible()
    check_accessibility(page)
    page.get_by_role("button", name="Forget contract.pdf").click()
    expect(page.get_by_text("1 file is not searchable")).to_be_visible()
    file = other.library.collections.path
    whole = file.read_text()
    file.write_text("collections: [")  # a description that could not be saved is not said to be
    page.get_by_role("button", name="Save description").click()
    expect(page.locator(".rg-errors", has_text="documents.yaml")).to_be_visible()
    expect(page.get_by_text("Description saved")).to_have_count(0)
    file.write_text(whole)
    other.library.delete_collection("elsewhere")
    expect(page.get_by_text("Collection 'elsewhere' no longer exists.")).to_be_visible()


@pytest.mark.slow
def test_process_that_holds_the_write_lock_is_reported(page: Page, other: Workspace, collection: Make) -> None:
    collection("locked")
    with open_workspace(other.root, exclusive=True) as holder:
        holder.library.ingest_text("Held.", "held", "locked")
        page.goto("/collection/locked")
        page.get_by_role("button", name="Delete held").click()
        page.get_by_role("button", name="Delete", exact=True).click()
        complaint(page, f"process {os.getpid()}")
    assert "held" in page.content()
