"""Uses damaged stores, each in a process of its own, in case it dies by a signal. A script for tests of damage.

    python -m tests.stores.survivors WORK=FOLDER...

WORK is ``search`` (search, then verify), ``repair`` (verify, repair, then search) or ``write`` (write, then search).
Every store must hold the sources `HELD`. Prints a line for each store on which this fails.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from contextlib import closing
from pathlib import Path

from ragistry.stores.local import LocalStore
from tests.stores.local_stores import check, check_searches, held, put, same, truth_of, version_of

OLD = [version_of(f"{number}.md", 1) for number in range(6)]
HELD = [version_of("0.md", 2, 5), *OLD[1:-1]]
"""What is left of `OLD` after the first source was replaced and the last one deleted."""


def use(work: str, folder: Path) -> None:
    truth = truth_of(*HELD)
    with closing(LocalStore(folder)) as store:
        if work == "repair":
            store.verify()
            repair = store.repair()
            assert (repair.lost, repair.again, repair.kept) == ((), (), ""), repair
            assert store.verify() == []
        if work == "write":
            put(store, version_of("new.md", 1))
            truth = truth_of(*HELD, version_of("new.md", 1))
            store.flush()
        check_searches(store, truth)
        assert same(held(store), truth)
    with closing(LocalStore(folder)) as store:
        check(store, truth, every=5)


def main(uses: list[str]) -> None:
    logging.disable()  # a warning of each damaged index
    for one in uses:
        work, _, folder = one.partition("=")
        if os.fork() == 0:
            try:
                use(work, Path(folder))
            except BaseException:  # noqa: BLE001
                traceback.print_exc(limit=-4)
                os._exit(1)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.wait()[1])
        if code:
            sys.stdout.write(f"{work} {Path(folder).name}: ended with {code}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
