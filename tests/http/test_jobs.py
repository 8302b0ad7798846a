"""The job runner that the server and the page share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from ragistry.http.jobs import Job, JobRunner, State, error_text

PATIENCE = 60.0


@dataclass(slots=True, eq=False)
class NamedJob(Job):
    name: str


class Runner(JobRunner[NamedJob]):
    """Runs jobs that wait for ``release``; the job ``broken`` fails."""

    def __init__(self, kept: int = 10) -> None:
        super().__init__(kept=kept)
        self.started, self.release = Event(), Event()
        self.log: list[str] = []

    def work(self, job: NamedJob, check: Callable[[], None]) -> None:
        self.started.set()
        assert self.release.wait(PATIENCE)
        check()
        if job.name == "broken":
            raise ValueError("no such file")

    def end(self, job: NamedJob, state: State, error: Exception | None) -> None:
        self.log.append(f"{job.name} {state} {'' if error is None else error_text(error)}".strip())
        super().end(job, state, error)

    def interrupted(self, job: NamedJob) -> None:
        self.log.append(f"{job.name} interrupted")


def test_jobs_run_in_order_and_a_failure_does_not_stop_them() -> None:
    runner = Runner()
    for name in ("first", "broken", "last"):
        assert runner.submit(NamedJob(name))
    runner.release.set()
    runner.close(finish=True)
    assert runner.log == ["first done", "broken failed ValueError: no such file", "last done"]
    assert not runner.submit(NamedJob("late"))


def test_cancel_ends_running_and_waiting_jobs() -> None:
    runner, running, waiting = Runner(), NamedJob("running"), NamedJob("waiting")
    runner.submit(running)
    runner.submit(waiting)
    assert runner.started.wait(PATIENCE)
    assert (runner.cancel(waiting), runner.cancel(running)) == ("waiting", "running")
    assert (waiting.state, running.state) == ("cancelled", "running")
    runner.release.set()
    runner.close(finish=True)
    assert runner.log == ["waiting cancelled", "running cancelled"]


def test_stop_interrupts_the_running_job_and_starts_no_other() -> None:
    runner, waiting = Runner(), NamedJob("waiting")
    runner.submit(NamedJob("running"))
    runner.submit(waiting)
    assert runner.started.wait(PATIENCE)
    runner.stop()
    runner.release.set()
    runner.close()
    assert (runner.log, waiting.state) == (["running interrupted"], "waiting")


def test_only_the_latest_ended_jobs_are_kept() -> None:
    runner = Runner(kept=2)
    for number in range(4):
        runner.submit(NamedJob(str(number)))
    runner.release.set()
    runner.close(finish=True)
    assert [job.name for job in runner.all()] == ["2", "3"]
