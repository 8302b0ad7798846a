"""Collections and sources in a browser: every flow as a visitor goes through it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from ragistry import open_workspace

HOSTILE = "<img src=x onerror=alert(1)>.md"


def add_collection(page: Page, address: str, name: str, description: str = "") -> None:
    page.goto(f"{address}/collections")
    page.get_by_role("button", name="Add collection").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Description").fill(description)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()


def upload(page: Page, *files: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    chooser.value.set_files(list(files))


def test_the_first_page_shows_every_collection_with_its_counts(page: Page, address: str) -> None:
    page.goto(f"{address}/collections")
    row = page.get_by_role("row", name="Handbook")
    expect(row).to_contain_text("15")
    expect(row).to_contain_text("Operations handbook")
    expect(page.get_by_role("row")).to_have_count(3)


def test_a_collection_is_added_filled_described_renamed_and_deleted(
    page: Page, address: str, root: Path, tmp_path: Path
) -> None:
    add_collection(page, address, "lab", "Notes of the lab")
    page.get_by_role("link", name="lab", exact=True).click()
    expect(page.get_by_text("Nothing in this collection yet.")).to_be_visible()
    (tmp_path / "rotor.md").write_text("# Rotor\n\nThe rotor spins at nine thousand turns.\n")
    upload(page, tmp_path / "rotor.md")
    expect(page.get_by_role("row", name="rotor.md")).to_be_visible()
    page.get_by_label("Description", exact=True).fill("What the lab measured")
    page.get_by_role("button", name="Save description").click()
    expect(page.get_by_text("Description saved")).to_be_visible()
    page.goto(f"{address}/collections")
    expect(page.get_by_role("row", name="lab")).to_contain_text("What the lab measured")
    page.get_by_role("button", name="Edit lab").click()
    page.get_by_label("Name", exact=True).fill("bench")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name="bench")).to_contain_text("What the lab measured")
    with open_workspace(root) as workspace:
        assert workspace.library.list_sources("bench") == ["rotor.md"]
    page.get_by_role("button", name="Delete bench").click()
    # By its name: the dialog before it fades out.
    expect(page.get_by_role("dialog", name="Delete bench?")).to_contain_text("1 source with 1 chunk goes with it")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("row", name="bench")).to_be_visible()
    page.get_by_role("button", name="Delete bench").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("row", name="bench")).to_have_count(0)
    with open_workspace(root) as workspace:
        assert [item["name"] for item in workspace.library.list_collections()] == ["handbook", "garden"]


def test_a_source_is_moved_and_deleted(page: Page, address: str, root: Path) -> None:
    with open_workspace(root) as workspace:
        workspace.library.ingest_text("Ladybirds eat aphids.", "ladybirds", "garden")
    page.goto(f"{address}/collection/garden")
    page.get_by_role("button", name="Move ladybirds to another collection").click()
    page.get_by_role("button", name="Handbook", exact=True).click()
    expect(page.get_by_text("1 chunk moved to Handbook")).to_be_visible()
    expect(page.get_by_role("row", name="ladybirds")).to_have_count(0)
    page.goto(f"{address}/collection/handbook")
    page.get_by_role("button", name="Delete ladybirds").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("row", name="ladybirds")).to_have_count(0)
    with open_workspace(root) as workspace:
        assert "ladybirds" not in workspace.library.list_sources()


def test_a_source_takes_the_place_of_another_of_its_name_when_that_is_wanted(
    page: Page, address: str, root: Path, tmp_path: Path
) -> None:
    for collection in ("from", "onto"):
        add_collection(page, address, collection)
        page.goto(f"{address}/collection/{collection}")
        (tmp_path / "twin.md").write_text(f"The text of {collection}.\n")
        upload(page, tmp_path / "twin.md")
        expect(page.get_by_role("row", name="twin.md")).to_be_visible()
    page.goto(f"{address}/collection/from")
    kept = root / ".ragistry" / "uploads"
    for answer, left in (("Cancel", ["The text of from.", "The text of onto."]), ("Replace", ["The text of from."])):
        page.get_by_role("button", name="Move twin.md to another collection").click()
        page.get_by_role("button", name="onto", exact=True).click()
        asked = page.get_by_role("dialog", name="Replace twin.md in onto?")
        expect(asked).to_contain_text("1 chunk goes. So does the file that was dropped here.")
        asked.get_by_role("button", name=answer).click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        if answer == "Replace":
            expect(page.get_by_text("twin.md: 1 chunk moved to onto")).to_be_visible()
        assert sorted(file.read_text().strip() for file in kept.glob("*/twin.md")) == left
    expect(page.get_by_role("row", name="twin.md")).to_have_count(0)
    with open_workspace(root) as workspace:
        [found] = workspace.search("text", collection="onto").documents
        assert (found.content, workspace.library.list_sources("from")) == ("The text of from.", [])


def test_the_file_of_two_sources_stays_when_one_takes_the_place_of_the_other(
    page: Page, address: str, root: Path
) -> None:
    file = root / ".ragistry" / "uploads" / "1f" / "shared.md"
    file.parent.mkdir(parents=True)
    file.write_text("A text of two collections.\n")
    with open_workspace(root) as workspace:
        for collection in ("one-half", "other-half"):
            workspace.library.create_collection(collection)
            workspace.library.ingest_file(file, collection)
    page.goto(f"{address}/collection/one-half")
    page.get_by_role("button", name="Move shared.md to another collection").click()
    page.get_by_role("button", name="other-half", exact=True).click()
    asked = page.get_by_role("dialog", name="Replace shared.md in other-half?")
    expect(asked).to_contain_text("1 chunk goes. The file stays.")
    asked.get_by_role("button", name="Replace").click()
    expect(page.get_by_text("shared.md: 1 chunk moved to other-half")).to_be_visible()
    assert file.exists()


def test_files_are_dropped_on_the_page(page: Page, address: str) -> None:
    add_collection(page, address, "dropped")
    page.goto(f"{address}/collection/dropped")
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


def test_bad_files_each_have_their_line_and_the_good_ones_go_in(page: Page, address: str, tmp_path: Path) -> None:
    add_collection(page, address, "mixed")
    page.goto(f"{address}/collection/mixed")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (tmp_path / "good.md").write_text("Good.\n")
    (tmp_path / HOSTILE).write_text("# <script>alert(1)</script>\n\nHostile <b>rotor</b>.\n")
    upload(page, tmp_path / "broken.pdf", tmp_path / "good.md", tmp_path / HOSTILE)
    expect(page.get_by_text("broken.pdf' is damaged or no PDF")).to_be_visible()
    expect(page.get_by_text("2 added, 1 failed")).to_be_visible()
    taken = page.get_by_role("status", name="Taking in")
    expect(taken.locator(".rg-file", has_text="broken.pdf")).to_contain_text("failed: 'broken.pdf' is damaged")
    expect(taken.locator(".rg-file", has_text="good.md")).to_contain_text("searchable")
    expect(page.get_by_role("row", name=HOSTILE)).to_be_visible()
    page.reload()
    expect(page.get_by_text("2 added, 1 failed")).to_be_visible()
    page.goto(f"{address}/?q=hostile+rotor&collection=mixed")
    first = page.get_by_role("article").first
    expect(first).to_contain_text("Hostile rotor")
    expect(first).to_contain_text(HOSTILE)
    assert first.locator("img, script, b").count() == 0


def test_the_same_name_twice_says_what_to_do(page: Page, address: str, tmp_path: Path) -> None:
    add_collection(page, address, "twice")
    page.goto(f"{address}/collection/twice")
    file = tmp_path / "note.md"
    file.write_text("First version.\n")
    upload(page, file)
    expect(page.get_by_role("row", name="note.md")).to_be_visible()
    file.write_text("Second version.\n")
    upload(page, file)
    expect(page.get_by_text("'note.md' is in this collection already; tick Replace")).to_be_visible()
    page.get_by_text("Replace sources of the same name").click()
    upload(page, file)
    expect(page.get_by_text("1 updated")).to_be_visible()


def test_two_files_of_one_name_are_not_taken_for_one(page: Page, address: str, root: Path, tmp_path: Path) -> None:
    add_collection(page, address, "pair")
    page.goto(f"{address}/collection/pair")
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.md").write_text(f"The text of folder {folder}.\n" * len(list(tmp_path.iterdir())))
    upload(page, tmp_path / "one" / "same.md", tmp_path / "two" / "same.md")
    expect(page.get_by_text("'same.md' is already being added")).to_be_visible()
    expect(page.get_by_text("1 added")).to_be_visible()
    with open_workspace(root) as workspace:
        [found] = workspace.search("text", collection="pair").documents
    assert "folder one" in found.content


def test_what_was_dropped_here_goes_with_its_collection(page: Page, address: str, root: Path, tmp_path: Path) -> None:
    add_collection(page, address, "secret")
    page.goto(f"{address}/collection/secret")
    (tmp_path / "diary.md").write_text("Dear diary.\n")
    upload(page, tmp_path / "diary.md")
    expect(page.get_by_role("row", name="diary.md")).to_be_visible()
    [kept] = (root / ".ragistry" / "uploads").glob("*/diary.md")
    page.goto(f"{address}/collections")
    page.get_by_role("button", name="Delete secret").click()
    expect(page.get_by_role("dialog")).to_contain_text("Files stay, but for those that were dropped here.")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("row", name="secret")).to_have_count(0)
    assert not kept.exists()


def test_a_description_that_could_not_be_saved_is_not_said_to_be(page: Page, address: str, root: Path) -> None:
    add_collection(page, address, "leaving")
    page.goto(f"{address}/collection/leaving")
    with open_workspace(root) as workspace:
        workspace.library.delete_collection("leaving")
    page.get_by_role("button", name="Save description").click()
    expect(page.get_by_text("no collection 'leaving'").first).to_be_visible()
    expect(page.get_by_text("Description saved")).to_have_count(0)


def test_a_file_of_another_format_is_refused(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/collection/garden")
    (tmp_path / "program.exe").write_bytes(b"MZ")
    upload(page, tmp_path / "program.exe")
    expect(page.get_by_text("'program.exe' was not added: .exe is not read here; add PDF, Markdown")).to_be_visible()
    with (tmp_path / "large.md").open("wb") as large:
        large.truncate(201_000_000)
    upload(page, tmp_path / "large.md")
    expect(page.get_by_text("'large.md' has 201 MB and a file may have 200 MB; split it")).to_be_visible()


def test_a_folder_is_taken_in_by_its_path_inside_the_roots_only(
    page: Page, address: str, tmp_path: Path, root: Path
) -> None:
    add_collection(page, address, "folder")
    page.goto(f"{address}/collection/folder")
    inside = root.parent / "papers"
    inside.mkdir()
    (inside / "one.md").write_text("One paper.\n")
    box = page.get_by_label("Folder on this machine")
    box.fill("/etc")
    page.get_by_role("button", name="Add folder").click()
    expect(page.get_by_text("'/etc' is outside of")).to_be_visible()
    box.fill(str(inside))
    page.get_by_role("button", name="Add folder").click()
    expect(page.get_by_role("row", name="one.md")).to_be_visible()


def test_a_row_leads_to_its_sources_wherever_it_is_clicked(page: Page, address: str) -> None:
    page.goto(f"{address}/collections")
    page.get_by_text("Operations handbook").click(force=True)  # the link of the name lies over it
    expect(page.get_by_role("row", name="operations/backups.md")).to_be_visible()


def test_what_is_being_written_is_not_written_over(page: Page, address: str, root: Path) -> None:
    add_collection(page, address, "described", "At first")
    page.goto(f"{address}/collection/described")
    field = page.get_by_label("Description", exact=True)
    expect(field).to_have_value("At first")
    with open_workspace(root) as workspace:
        workspace.library.update_description("described", "By another")
        expect(field).to_have_value("By another")
        field.fill("Half a sent")
        page.get_by_label("Folder on this machine").fill("/etc")
        page.get_by_role("button", name="Add folder").click()
        expect(page.get_by_text("is outside of")).to_be_visible()  # then what was typed before has arrived, too
        workspace.library.update_description("described", "By a third")
        workspace.library.ingest_text("A text.", "marker", "described")
    expect(page.get_by_role("row", name="marker")).to_be_visible()
    expect(field).to_have_value("Half a sent")


def test_a_file_can_be_added_again(page: Page, address: str, tmp_path: Path) -> None:
    add_collection(page, address, "again")
    page.goto(f"{address}/collection/again")
    (tmp_path / "same.md").write_text("The same.\n")
    page.get_by_text("Replace sources of the same name").click()
    for said in ("1 added", "1 updated"):  # the same text, kept in another place
        upload(page, tmp_path / "same.md")
        expect(page.get_by_text(said)).to_be_visible()


def test_another_window_sees_what_changed(page: Page, address: str, root: Path) -> None:
    page.goto(f"{address}/collections")
    with open_workspace(root) as workspace:
        workspace.library.create_collection("elsewhere", "Made by another process")
    expect(page.get_by_role("row", name="elsewhere")).to_be_visible()
    page.goto(f"{address}/collection/elsewhere")
    with open_workspace(root) as workspace:
        workspace.library.ingest_text("A text.", "text", "elsewhere")
    expect(page.get_by_role("row", name="text")).to_be_visible()
    with open_workspace(root) as workspace:
        workspace.library.delete_collection("elsewhere")
    expect(page.get_by_text("no collection 'elsewhere'").first).to_be_visible()
    page.reload()
    expect(page.get_by_text("There is no collection 'elsewhere' any more.")).to_be_visible()


def test_a_dialog_can_be_used_by_keyboard_alone(page: Page, address: str) -> None:
    page.goto(f"{address}/collections")
    page.get_by_role("button", name="Add collection").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    expect(page.get_by_role("row", name="typed")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)  # it fades; what is asked next is another
    page.get_by_role("button", name="Delete typed").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Delete typed")).to_be_focused()
    expect(page.get_by_role("row", name="typed")).to_be_visible()


@pytest.mark.parametrize(
    "path", ["/", "/collections", "/collection/handbook", "/?q=restore+a+backup&compare=bm25", "/techniques"]
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(page: Page, address: str, path: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(address + path)
    page.wait_for_selector(".rg-main")
    page.wait_for_timeout(500)
    violations = Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in violations if v["impact"] in ("serious", "critical")] == []


def test_screenshots(address: str, shoot: Callable[[str, str], None]) -> None:
    for name, path in {
        "collections": "/collections",
        "sources": "/collection/handbook",
        "techniques": "/techniques",
    }.items():
        shoot(address + path, name)
