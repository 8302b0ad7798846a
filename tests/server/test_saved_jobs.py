"""How saved jobs run: in order, until they are cancelled or the server stops."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from ragistry.server import jobs
from ragistry.server.access import LOCAL_CALLER
from ragistry.server.jobs import RunningJob, SavedJob, SavedJobs
from ragistry.server.uploads import Uploads

PATIENCE = 60.0


class Runner:
    """Jobs that wait for ``release``; the job ``broken`` fails."""

    def __init__(self, folder: Path) -> None:
        self.started, self.release = Event(), Event()
        self.saved = SavedJobs(folder, Uploads(folder.parent / "uploads", list), {"ingest": self.work})

    def add(self, name: str) -> SavedJob:
        with self.saved.new_folder() as folder:
            return self.saved.add(folder, "ingest", LOCAL_CALLER, name, {})

    def work(self, running: RunningJob) -> dict[str, Any]:
        self.started.set()
        assert self.release.wait(PATIENCE)
        running.check()
        if running.job.collection == "broken":
            raise ValueError("no such file")
        return {}

    def states(self) -> dict[str | None, str]:
        return {job.collection: job.state for job in self.saved.all()}


@pytest.fixture
def start(tmp_path: Path) -> Callable[[], Runner]:
    return lambda: Runner(tmp_path / "jobs")


def test_jobs_run_in_order_and_a_failure_does_not_stop_them(start: Callable[[], Runner]) -> None:
    runner = start()
    for name in ("first", "broken", "last"):
        runner.add(name)
    runner.release.set()
    runner.saved.close(finish=True)
    assert runner.states() == {"first": "done", "broken": "failed", "last": "done"}
    ends = [job.finished or 0.0 for job in runner.saved.all()]
    assert ends == sorted(ends)
    assert runner.add("late").state == "waiting"
    following = start()
    following.saved.start()
    following.release.set()
    following.saved.close(finish=True)
    assert following.states()["late"] == "done"


def test_stop_interrupts_the_running_job_and_the_next_start_runs_all(start: Callable[[], Runner]) -> None:
    runner = start()
    runner.add("running")
    runner.add("waiting")
    assert runner.started.wait(PATIENCE)
    runner.saved.stop()
    runner.release.set()
    runner.saved.close()
    assert not any(job.ended for job in runner.saved.all())
    following = start()
    following.saved.start()
    following.release.set()
    following.saved.close(finish=True)
    assert following.states() == {"running": "done", "waiting": "done"}


def test_only_the_latest_ended_jobs_are_kept(start: Callable[[], Runner], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "KEPT", 2)
    runner = start()
    for number in range(4):
        runner.add(str(number))
    runner.release.set()
    runner.saved.close(finish=True)
    assert list(runner.states()) == ["2", "3"]
    assert len(list(runner.saved.folder.glob("*/job.json"))) == 2


def test_job_of_an_earlier_version_is_read_and_run(start: Callable[[], Runner], tmp_path: Path) -> None:
    """``job.json`` as version 0.2.0 wrote it, also with a key that is no longer known."""
    values = {
        "id": "1f", "kind": "ingest", "owner": "this machine", "collection": "notes", "request": {"paths": ["/a.md"]},
        "created": 5.0, "current": "reading", "done": 0, "total": 1, "report": None, "error": None, "inside": 0.0,
        "stages": {}, "notes": [], "state": "running", "finished": None, "gone": 1,
    }  # fmt: skip
    (tmp_path / "jobs" / "1f" / "files").mkdir(parents=True)
    (tmp_path / "jobs" / "1f" / "job.json").write_text(json.dumps(values))
    runner = start()
    runner.release.set()
    runner.saved.start()
    runner.saved.close(finish=True)
    assert runner.states() == {"notes": "done"}
