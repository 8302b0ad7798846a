"""The archives of vector_stores.yaml as targets of routing."""

from __future__ import annotations

from collections.abc import Sequence

from ragistry.config.archive_settings import archive_settings
from ragistry.config.archives import RagArchiveConfig
from ragistry.library.archive_technique import ArchiveTechnique, archive_technique
from ragistry.techniques.routing.target import Target


class ArchiveTargets:
    """One target for each archive. A server is contacted only when its archive is searched.

    Raises `InvalidConfigError` for a bad variable of the environment.
    """

    def __init__(self, archives: Sequence[RagArchiveConfig]) -> None:
        settings = archive_settings() if archives else None
        self.techniques: list[ArchiveTechnique] = [archive_technique(archive, settings) for archive in archives]

    def targets(self) -> list[Target]:
        """The archives, in the order of the file."""
        return [Target(each.name, each.description, "archive", technique=each, store=each) for each in self.techniques]

    def close(self) -> None:
        """Close every connection."""
        for technique in self.techniques:
            technique.close()
