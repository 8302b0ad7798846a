"""The dialog that starts a comparison, and the card that shows how far it is."""

from __future__ import annotations

from urllib.parse import quote

from nicegui import events, ui

from ragistry.errors import RagistryError
from ragistry.web.comparisons import QUESTIONS, Queries
from ragistry.web.controls import button
from ragistry.web.dialogs import dialog
from ragistry.web.intake import safe_name
from ragistry.web.site import Site, complain

EVERY = 0.5
"""Seconds after which a window looks again; nothing is read for it."""
MADE, GIVEN = "Made from your documents", "From a file"
USUAL = ("naive", "bm25", "hybrid")
"""Techniques that are proposed."""
MEGABYTES = 20


async def start_comparison(site: Site) -> None:
    """Ask what is compared on which questions, and begin; the dialog stays until it has begun."""
    chosen: dict[str, bytes] = {}
    comparisons = site.comparisons

    async def receive(event: events.UploadEventArguments) -> None:
        chosen.clear()
        chosen[safe_name(event.file.name)] = await event.file.read()
        shown.set_text(event.file.name)

    def offer() -> None:
        is_made = kind.value == MADE
        names = comparisons.offered(made=is_made)
        techniques.set_options(names, value=[name for name in techniques.value if name in names])
        number.set_visibility(is_made)
        given.set_visibility(not is_made)

    def begin() -> None:
        queries = Queries(number=int(number.value or QUESTIONS))
        if kind.value == GIVEN:
            if not chosen:
                complain("no file of queries is chosen; choose one, or have questions made")
                return
            [(name, content)] = chosen.items()
            queries = Queries(content, name)
        try:
            comparisons.start(list(techniques.value), queries)
        except RagistryError as error:
            complain(str(error))
            return
        asked.close()

    names = comparisons.offered(made=True)
    with dialog("New comparison") as asked:
        ui.label("Which technique finds more on your documents, and how sure is that?").classes("rg-dim")
        usual = [name for name in USUAL if name in names]
        techniques = ui.select(names, value=usual, label="Techniques", multiple=True).props("outlined dense use-chips")
        techniques.classes("w-full")
        kind = ui.radio([MADE, GIVEN], value=MADE, on_change=offer).props("dense").classes("rg-kinds")
        kind.props["aria-label"] = "Questions"
        number = ui.number("Questions at most", value=QUESTIONS, min=5, max=1_000, precision=0)
        number.props("outlined dense").classes("w-full")
        with ui.element("div").classes("rg-bar") as given:
            uploader = ui.upload(auto_upload=True, max_files=1, max_file_size=MEGABYTES * 1_000_000, on_upload=receive)
            uploader.classes("rg-hidden").props["accept"] = ".jsonl,.json"
            sender = f"getElement({uploader.id}).$refs.qRef"
            pick = button("Choose queries", icon="upload_file")
            pick.on("click", js_handler=f"() => {{ {sender}.reset(); {sender}.pickFiles(); }}")
            uploader.on(
                "rejected", lambda: complain(f"queries are a .jsonl file of at most {MEGABYTES} MB; choose one")
            )
            shown = ui.label('JSON lines such as {"text": "…", "sources": ["…"]}').classes("rg-dim")
        given.set_visibility(False)
        with ui.row().classes("rg-dialog-actions"):
            button("Cancel", asked.close)
            button("Start", begin, kind="main")
    await asked


def running_comparison(site: Site) -> None:
    """How far the comparison is that was started last, with its report once it is there."""
    with ui.element("div").classes("rg-job").props('role=status aria-label="Comparison"') as card:
        with ui.element("div").classes("rg-bar"):
            what = ui.label().classes("rg-job-label")
            stage = ui.label().classes("rg-dim")
            stop = button("Stop", site.comparisons.stop)
            report = ui.link("Show the report", "/compare")
        bar = ui.linear_progress(show_value=False)
        bar.props["aria-label"] = "Progress of the comparison"
        failure = ui.label().classes("rg-failure")

    def look() -> None:
        last = site.comparisons.last
        card.set_visibility(last is not None)
        if last is None:
            return
        what.set_text(f"Comparing {', '.join(last.techniques)}")
        stage.set_text(last.stage if last.state == "running" else last.state)
        for shown in (bar, stop):
            shown.set_visibility(last.state == "running")
        bar.set_value(last.share)
        failure.set_text(last.error)
        report.set_visibility(bool(last.report))
        report.props["href"] = f"/compare/{quote(last.report, safe='')}"

    look()
    ui.timer(EVERY, look)
