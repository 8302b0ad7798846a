"""Where a comparison writes, tried before any work: what would fail at its end fails at its beginning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryFile

from ragistry.errors import EvaluationError

Paths = Mapping[str, str | Path | None]
"""What is written → where; None: it is not asked for."""


def check_outputs(*, files: Paths, folders: Paths, seed: int) -> None:
    """Raise `EvaluationError` with every file and folder that cannot be written, and for a seed that cannot be drawn.

    What has to be made to find out is removed again.
    """
    asked = {name: Path(path) for name, path in {**files, **folders}.items() if path is not None}
    problems = [
        *_shared({name: asked[name] for name in files if name in asked}),
        *_unwritable(asked, folders),
        *_bad_seed(seed),
    ]
    if len(problems) > 1:
        problems = [f"{len(problems)} problems:", *(f"  {problem}" for problem in problems)]
    if problems:
        raise EvaluationError("\n".join(problems))


def _shared(files: Mapping[str, Path]) -> Iterable[str]:
    for (one, path), (other, same) in combinations(files.items(), 2):
        if path.absolute() == same.absolute():
            yield f"{one} and {other} would both be written to {str(path)!r}; name another for one of them"


def _unwritable(asked: Mapping[str, Path], folders: Paths) -> Iterable[str]:
    for name, path in asked.items():
        kind, other = ("folder", "file") if name in folders else ("file", "folder")
        try:
            if path.is_file() if name in folders else path.is_dir():
                yield f"cannot write the {name} {str(path)!r}: it is a {other}; give a {kind} for {name}"
            else:
                _try(path, name in folders)
        except (FileExistsError, NotADirectoryError):
            yield f"cannot write the {name} {str(path)!r}: a part of its path is a file; give another {kind}"
        except OSError as error:
            yield f"cannot write the {name} {str(path)!r}: {error.strerror}; give another {kind}"


def _try(path: Path, folder: bool) -> None:
    home = path if folder else path.parent
    missing = [above for above in (home, *home.parents) if not above.exists()]
    try:
        home.mkdir(parents=True, exist_ok=True)
        if folder:
            TemporaryFile(dir=home).close()
        else:
            new = not path.exists()
            path.open("ab").close()
            if new:
                path.unlink()
    finally:
        _remove(missing)


def _remove(folders: Sequence[Path]) -> None:
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _bad_seed(seed: int) -> list[str]:
    if isinstance(seed, int) and seed >= 0:
        return []
    return [f"the seed is {seed!r}; give a whole number from 0"]
