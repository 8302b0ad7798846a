"""Embedders for tests of engines; workers import this file too."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from ragistry.errors import ModelNotFoundError
from ragistry.testing.hashed import HashingEmbedder


class Deadly(HashingEmbedder):
    """Kills the first process that counts the tokens of Note 4, and sets the clock of its process to 1970.

    The file ``death`` says that it has happened.
    """

    def __init__(self, death: Path) -> None:
        super().__init__()
        self.death = death

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        time.time = lambda: 0.0
        if not self.death.exists() and any("Note 4" in text for text in texts):
            self.death.touch()
            kill_this_process(None)
        return super().count_tokens(texts)


class Unpicklable(HashingEmbedder):
    """Cannot leave its process."""

    def __reduce__(self):
        raise TypeError("it holds a connection")


def slow(numbers: list[int]) -> list[int]:
    """The numbers, after a moment."""
    time.sleep(0.3)
    return numbers


def fail_for_lack_of_a_model(_: object) -> list[object]:
    raise ModelNotFoundError("the weights are missing")


def kill_this_process(_: object) -> list[object]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def die_of_a_word(texts: list[str]) -> list[str]:
    if "venom" in texts:
        kill_this_process(texts)
    return texts
