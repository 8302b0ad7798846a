"""What the search page shows while a library is empty: where to drop the first files, and how far each of them is."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from ragistry.config.files import slug
from ragistry.web.holdings import Holdings
from ragistry.web.intake import drop_zone
from ragistry.web.job_list import job_list
from ragistry.web.jobs import Job
from ragistry.web.site import Site, attempt

PROPOSED = "My documents"


def welcome(site: Site) -> Callable[[Holdings], None]:
    """The zone, which makes the collection that it fills; call it with what the library holds."""
    followed: set[int] = set()
    known: dict[str, str] = {}

    async def collection() -> str | None:
        typed = (name.value or "").strip() or PROPOSED
        wanted = known.get(typed, slug(typed))

        def make() -> str:
            library = site.workspace.library
            if wanted not in (entry.name for entry in library.collections.entries()):
                library.create_collection(wanted, "", None if wanted == typed else typed)
            return wanted

        return await attempt(make)

    def ours() -> list[Job]:
        """The jobs that this window has seen while they ran."""
        jobs = site.jobs.of()
        followed.update(job.number for job in jobs if not job.ended)
        return [job for job in jobs if job.number in followed]

    with ui.element("div").classes("rg-welcome"):
        with ui.element("div").classes("rg-part") as first:
            ui.label("There is nothing to search yet. Add your first files.").classes("rg-welcome-text")
            name = ui.input("Collection", value=PROPOSED).props("dense outlined").classes("rg-welcome-name")
            drop_zone(site, collection)
        job_list(site, ours)
    first.set_visibility(False)

    def show(found: Holdings) -> None:
        known.update({entry.display_name: entry.name for entry in found})
        if found and name.value == PROPOSED and PROPOSED not in known:
            name.set_value(found[0].display_name)
        first.set_visibility(not any(entry.chunks for entry in found))

    return show
