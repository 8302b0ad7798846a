"""Reading a source beside the results: the passage in its text, the page of a PDF, its file, and keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from ragistry import open_workspace
from ragistry.types import Document
from ragistry.web.around import surroundings
from tests.library.git_trees import commit
from tests.web.conftest import served

HOSTILE = "# <img src=x onerror=alert(1)>\n\nThe rotor <script>alert(2)</script> spins. [click](javascript:alert(3))\n"


@pytest.fixture(scope="module")
def root(library: Path, fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a PDF and a hostile document."""
    root = tmp_path_factory.mktemp("read")
    files = root / "files"
    files.mkdir()
    for source in (*(fixtures / "handbook" / "operations").glob("*.md"), fixtures / "manuals" / "dishwasher.pdf"):
        (files / source.name).write_bytes(source.read_bytes())
    (files / "hostile.html.md").write_text(HOSTILE)
    with open_workspace(root) as workspace:
        workspace.library.create_collection("desk")
        workspace.library.ingest_folder(files, "desk")
        workspace.library.ingest_text("A note about quokkas without a file.", "note", "desk")
    return root


@pytest.fixture
def reader(page: Page, address: str) -> Callable[[str], None]:
    """Ask, and open the first result."""

    def read(query: str) -> None:
        page.goto(f"{address}/?q={query}&technique=bm25")
        page.get_by_role("article").first.locator(".rg-hit-title").click()
        expect(page.get_by_role("complementary", name="Reader")).to_be_visible()

    return read


def test_a_click_opens_the_source_with_the_passage_marked_and_in_view(
    page: Page, reader: Callable[[str], None]
) -> None:
    reader("--at+yesterday+archive")
    here = page.get_by_role("region", name="The passage that was found")
    expect(here.locator("mark").first).to_be_in_viewport()
    expect(page.locator(".rg-context").first).not_to_be_empty()
    expect(page.get_by_role("article").first).to_be_visible()


def test_every_further_passage_of_a_source_opens_where_it_stands(page: Page, address: str) -> None:
    page.goto(f"{address}/?q=restore+a+backup&technique=bm25")
    more = page.get_by_role("article").first.locator(".rg-more-one").first
    expect(page.get_by_role("article").first).to_contain_text("more in this file")
    more.click()
    expect(page.get_by_role("region", name="The passage that was found")).to_be_in_viewport()
    expect(page.get_by_role("status").filter(has_text="2 of")).to_be_visible()


def test_the_next_and_the_previous_passage_are_a_button_away(page: Page, reader: Callable[[str], None]) -> None:
    reader("restore+a+backup")
    expect(page.get_by_role("button", name="Previous passage")).to_be_disabled()
    passage = page.get_by_role("region", name="The passage that was found").inner_text()
    page.get_by_role("button", name="Next passage").click()
    expect(page.get_by_text("2 of")).to_be_visible()
    found = page.get_by_role("region", name="The passage that was found")
    expect(found).not_to_have_text(passage, use_inner_text=True)
    page.get_by_role("button", name="Previous passage").click()
    expect(page.get_by_role("region", name="The passage that was found")).to_have_text(passage, use_inner_text=True)


def test_the_page_is_used_by_keyboard_alone(page: Page, address: str) -> None:
    page.goto(f"{address}/")
    page.locator("body").click()
    page.keyboard.press("/")
    field = page.get_by_label("What to look for")
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    page.keyboard.type("restore a backup")
    page.keyboard.press("Enter")
    titles = page.locator(".rg-hit-title")
    expect(titles.nth(1)).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(titles.first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Reader")).to_be_visible()
    expect(titles.first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary", name="Reader")).to_have_count(0)
    expect(titles.first).to_be_focused()


def test_in_a_narrow_window_the_reader_lies_over_the_results(page: Page, reader: Callable[[str], None]) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    reader("restore+a+backup")
    box = page.get_by_role("complementary", name="Reader").bounding_box()
    assert box is not None
    assert (box["x"], box["width"]) == (0, 390)
    expect(page.get_by_role("button", name="Close reader")).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary", name="Reader")).to_have_count(0)


def test_what_is_open_is_in_the_address(page: Page, reader: Callable[[str], None]) -> None:
    reader("restore+a+backup")
    expect(page).to_have_url(re.compile("open="))
    page.reload()
    expect(page.get_by_role("complementary", name="Reader")).to_be_visible()
    page.get_by_role("button", name="Close reader").click()
    expect(page).not_to_have_url(re.compile("open="))


def test_a_citation_is_copied(page: Page, reader: Callable[[str], None]) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reader("--at+yesterday+archive")
    page.get_by_role("button", name="Copy citation").click()
    expect(page.get_by_text("Citation copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "Back up and restore, Put a backup back (desk: backups.md)"


def test_a_page_of_a_pdf_is_shown_as_it_looks(page: Page, reader: Callable[[str], None]) -> None:
    reader("dishwasher+salt")
    image = page.get_by_role("img", name="Page 1 of dishwasher.pdf")
    expect(image).to_be_visible()
    page.wait_for_function("document.querySelector('.rg-page').naturalWidth > 800")
    expect(page.get_by_role("region", name="The passage that was found")).to_contain_text("salt")


def test_a_hostile_document_is_shown_and_does_nothing(page: Page, reader: Callable[[str], None]) -> None:
    reader("rotor+spins")  # the fixture `page` fails where a script of the document ran
    expect(page.get_by_role("region", name="The passage that was found")).to_contain_text("spins")
    assert page.locator(".rg-reader img, .rg-reader script, .rg-reader-body a").count() == 0


def test_a_text_without_a_file_has_none_to_open(page: Page, reader: Callable[[str], None]) -> None:
    reader("quokkas")
    expect(page.get_by_role("link", name="Open file")).to_have_count(0)


def test_the_file_is_served_as_it_is_and_cannot_run(address: str, root: Path) -> None:
    text = httpx.get(f"{address}/file", params={"collection": "desk", "source": "hostile.html.md"})
    assert (text.status_code, text.text) == (200, HOSTILE)
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.headers["content-disposition"] == 'inline; filename="hostile.html.md"'
    assert "sandbox" in text.headers["content-security-policy"]
    assert text.headers["x-content-type-options"] == "nosniff"
    pdf = httpx.get(f"{address}/file", params={"collection": "desk", "source": "dishwasher.pdf"})
    assert (pdf.headers["content-type"], pdf.content[:4]) == ("application/pdf", b"%PDF")


@pytest.mark.parametrize("source", ["../files/backups.md", "/etc/passwd", "config/documents.yaml", "note", "absent.md"])
def test_no_other_file_is_served(address: str, source: str) -> None:
    for path in ("/file", "/page-image"):
        answer = httpx.get(address + path, params={"collection": "desk", "source": source, "page": 1})
        assert answer.status_code == 404
        assert "root:" not in answer.text


def test_a_link_in_the_place_of_a_file_is_not_followed(address: str, root: Path) -> None:
    file, secret = root / "files" / "upgrades.md", root / "secret.txt"
    assert httpx.get(f"{address}/file", params={"collection": "desk", "source": "upgrades.md"}).status_code == 200
    secret.write_text("secret")
    file.rename(root / "kept.md")
    file.symlink_to(secret)
    answer = httpx.get(f"{address}/file", params={"collection": "desk", "source": "upgrades.md"})
    file.unlink()
    (root / "kept.md").rename(file)
    assert (answer.status_code, "no longer where it was read from" in answer.text) == (404, True)


def test_only_pages_that_a_pdf_has_are_drawn(address: str) -> None:
    asked = {"collection": "desk", "source": "dishwasher.pdf", "page": "1"}
    drawn = httpx.get(f"{address}/page-image", params=asked, timeout=30)
    assert (drawn.headers["content-type"], drawn.content[:4]) == ("image/png", b"\x89PNG")
    for page in ("0", "99"):
        assert "there are 5 pages" in httpx.get(f"{address}/page-image", params=asked | {"page": page}, timeout=30).text
    text = httpx.get(f"{address}/page-image", params=asked | {"source": "backups.md"})
    assert "is not a PDF" in text.text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(page: Page, reader: Callable[[str], None], scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    reader("dishwasher+salt")
    page.wait_for_timeout(500)
    violations = Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in violations if v["impact"] in ("serious", "critical")] == []


def test_a_passage_of_a_repository_opens_with_the_text_around_it_too(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "widget"
    folder.mkdir()
    parts = [f"## Part {number}\n\n{f'The widget of kind {number} turns a wheel. ' * 30}\n" for number in range(4)]
    commit(folder, {"install.md": "# Install\n\n" + "\n".join(parts)})
    with open_workspace(tmp_path) as workspace:
        workspace.repositories.add(folder)
        workspace.library.create_collection("tea", "How tea is brewed")
        workspace.library.ingest_text("Steep green tea in water of eighty degrees.", "green.txt", "tea")
    with served(tmp_path) as address:
        page.goto(f"{address}?q=widget+of+kind+2&technique=routed")
        page.locator(".rg-hit-title").first.click()
        expect(page.locator(".rg-here mark").first).to_be_visible()
        expect(page.locator(".rg-context").first).to_contain_text("turns a wheel")


def test_a_passage_of_an_archive_opens_where_its_repository_is_not_here(tmp_path: Path) -> None:
    told = {"archive": "old", "collection": "old", "repository": "elsewhere", "source_file": "a.md", "chunk_index": 0}
    with open_workspace(tmp_path) as workspace:
        found = surroundings(workspace, Document("A passage.", told, 1.0, "abc"))
    assert found == ("", "A passage.", "")


def test_screenshots(
    page: Page, reader: Callable[[str], None], address: str, shoot: Callable[[str, str], None]
) -> None:
    for name, query in {"reader": "--at+yesterday+archive", "reader-pdf": "dishwasher+salt"}.items():
        reader(query)
        expect(page).to_have_url(re.compile("open="))
        shoot(page.url, name)
