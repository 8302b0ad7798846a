"""``ragistry testset judge``: grade passages by one key each, until they decide between two techniques."""

from __future__ import annotations

import os
import re
import shlex
import sys
from difflib import unified_diff
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from select import select
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.command import run_line
from ragistry.cli.confirm import ask_yes_no
from ragistry.cli.options import WorkspaceOption
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console, error_line
from ragistry.errors import ConfigError, DatasetError, RagistryError
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.evaluation.judging import Judgement
    from ragistry.evaluation.stopping import Decision
    from ragistry.library.asked import AskedQuestion
    from ragistry.workspace import Workspace

KEYS = """\
1 answers it   2 partly   3 no   n none of these   l not in my library
s skip   u undo   o open the source   q end"""
GRADES = {"1": 2, "2": 1, "3": 0}
_ESCAPED = re.compile(r"[\\/.*\[\]^$&]")
"""What has a meaning in a command of sed."""
DEVIATION = 0.3
"""Usual deviation of differences of RR@3, before the grades show it."""


def judge(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="SET", help="Folder of questions and grades.", parser=given_path)],
    challenger: Annotated[str, typer.Argument(metavar="[NAME]", help="Technique to try.")] = "bm25",
    margin: Annotated[
        float | None,
        typer.Option("--margin", min=0.01, max=1, help="Ask as many questions as show this difference (default: 80)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change no configuration.")] = False,
    workspace: WorkspaceOption = Path(),
) -> None:
    """Grade passages by one key each, until they decide whether NAME is better than the default technique.

    The questions are those of SET, else those that people asked, made ones, or what you type. You can end at any time.
    """
    from filelock import FileLock, Timeout

    from ragistry.evaluation.judging import QRELS, Judgement
    from ragistry.evaluation.stopping import FIRST, QUESTIONS
    from ragistry.workspace import open_workspace

    if not sys.stdin.isatty() or find_spec("termios") is None:
        raise ConfigError("judging needs the keys of a terminal of Linux or macOS; run it in one")
    with open_workspace(workspace, existing=True) as opened:
        pair = {"default": opened.registry.default, "challenger": challenger}
        for name in pair.values():
            if reason := opened.registry.unusable(name):
                raise ConfigError(reason)
        if len({*pair.values()}) == 1:
            raise ConfigError(f"{challenger!r} is the default technique; name another one to try")
        if not opened.store.count():
            raise DatasetError("the library is empty; ingest first: ragistry ingest FOLDER --collection NAME")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(folder / ".lock", timeout=0):
                made = Judgement(folder)
                if not made.plan and (folder / QRELS).exists():
                    raise DatasetError(f"{str(folder / QRELS)!r} is of another program; name a new folder")
                if not made.questions:
                    _offer(opened, made)
                if not made.plan:
                    total = min(max(FIRST, len(made.questions)) if made.questions else QUESTIONS, QUESTIONS)
                    made.add({**pair, "margin": margin, "total": total})
                made.keep_answers()
                wanted = pair if margin is None else pair | {"margin": margin}
                if wanted != {name: made.plan[name] for name in wanted}:
                    was = f"{made.plan['default']} and {made.plan['challenger']} with margin {made.plan['margin']}"
                    raise DatasetError(f"{str(folder)!r} decides between {was}; name a new folder for another choice")
                session = Session(context, opened, made)
                try:
                    session.run()
                except (EOFError, KeyboardInterrupt, typer.Abort):
                    pass
                finally:
                    dropped = made.write_set(opened)
                decided = session.print_result(dropped)
        except Timeout as error:
            raise DatasetError(f"another process judges {str(folder)!r}; end it first") from error
        if decided.outcome == "challenger":
            _apply(opened, challenger, dry_run=dry_run)


def _offer(opened: Workspace, made: Judgement) -> None:
    """Offer the questions that people asked, else made ones."""
    from ragistry.evaluation.data.library import library_sources
    from ragistry.evaluation.data.testsets import known_items

    texts, what = {one.text.casefold(): one.text for one in _asked(opened)}, "that people asked"
    kinds = dict.fromkeys(texts.values(), "asked")
    if not kinds:
        what = "made of your documents, whose words they repeat"
        kinds = {one.text: str(one.kind) for one in known_items(library_sources(opened))}
    if kinds and ask_yes_no(f"Judge {numbered(len(kinds), '[question|questions]')} {what}?", default=True):
        made.add({"questions": kinds})


def _asked(opened: Workspace) -> list[AskedQuestion]:
    """Return the questions that people asked, newest first."""
    from ragistry.library.asked import FILE, QuestionLog

    asked = QuestionLog(opened.path_of(opened.settings.data_dir) / FILE).read()
    return [one for one in reversed(asked) if not one.limited]


class Session:
    """One sitting: the questions that are left, and the keys."""

    def __init__(self, context: typer.Context, opened: Workspace, made: Judgement) -> None:
        from ragistry.evaluation.judging import confirmed_passages

        self.context, self.opened, self.made, self.out = context, opened, made, console()
        self.left_out, self.confirmed = set[str](), confirmed_passages(opened, _asked(opened))
        self.skipped = list[tuple[str, int]]()  # with the number of keys before
        for question in filter(made.has_grades, made.questions):
            self.load(question)

    def load(self, question: str) -> bool:
        """Search with both techniques; a question on which one fails is left out."""
        from ragistry.evaluation.judging import candidates

        try:
            names = [self.made.plan["default"], self.made.plan["challenger"]]
            self.made.candidates[question] = candidates(
                self.opened, question, names, confirmed=self.confirmed.get(question, ())
            )
        except Exception as error:  # noqa: BLE001, of a technique that a person wrote
            error_line(f"left out {question!r}: {error}", label="note")
            self.left_out.add(question)
        return question not in self.left_out

    def decision(self) -> Decision:
        """Return what the grades decide now."""
        from ragistry.evaluation.stopping import decide

        return decide(self.made.differences(), self.made.plan["total"], self.made.plan["margin"])

    def run(self) -> None:
        """Ask until the grades decide, or the person ends."""
        from ragistry.utils.ids import text_hash

        made, total = self.made, 0
        while (now := self.decision()).outcome == "open":
            if now.total != total:
                self.print_plan(now, was=total)
                total = now.total
            left = [one for one in made.questions if one not in {*self.left_out, *made.complete()}]
            if question := min(left, key=text_hash, default=""):
                if question in made.candidates or self.load(question):
                    self.ask(question)
            elif typed := _typed_questions():
                made.add({"questions": {one: "asked" for one in typed if one not in made.questions}})
            else:
                return

    def ask(self, question: str) -> None:
        """Ask for the grade of the next passage of a question, or of an earlier one again."""
        made, found = self.made, self.made.candidates[question]
        left = [key for key in found.passages if key in found.needed - made.grades(question).keys()]
        if due := made.due():
            shown, passage = due
            key = self.key(*due, "again")
        elif left:
            shown, passage = question, left[0]
            key = self.key(shown, passage, f"passage {len(found.passages) - len(left) + 1} of {len(found.passages)}")
        else:
            self.out.print(f"\nNo grade is needed, because both lists are equal: {question}")
            made.grade(question, {})
            return
        again = due is not None
        if key == "u":
            if self.skipped and self.skipped[-1][1] == made.keys:
                self.left_out.discard(self.skipped.pop()[0])
            else:
                made.add({"undo": True})
        elif key in GRADES:
            made.grade(shown, {passage: GRADES[key]}, again=again)
        elif again:
            made.grade(shown, {passage: 0} if key == "n" else {}, again=True)
        elif key == "n":
            made.grade(question, dict.fromkeys(left, 0))
        elif key == "l":
            made.grade(question, {}, absent=True)
        else:
            self.skipped.append((question, made.keys))
            self.left_out.add(question)

    def key(self, question: str, passage: str, which: str) -> str:
        """Show a passage without rank, score and marks, and return the key."""
        from ragistry.presentation import separate_cards
        from ragistry.presentation.terminal import print_card

        document, plan = self.made.candidates[question].passages[passage], self.decision()
        [card] = separate_cards([document], "", self.opened.settings.language, None)
        done = f"{plan.questions} of {plan.total} questions, next look at {plan.next_look}"
        self.out.print(f"\n{'-' * 79}\n{which} · {done}\n")
        print_card(self.out, None, card)
        self.out.print(f"\nQuestion: {question}\n{KEYS}")  # below the passage, which may be longer than the screen
        while (key := _typed()) not in {*GRADES, *"nlsu"}:
            if key in ("q", "\x04", ""):
                raise EOFError
            if key == "o":
                get = document.metadata.get
                words = ["read", str(get("source_file")), f"--collection={get('collection')}"]
                words += [f'--place={{"line": {get("line")}}}'] if get("line") else []
                try:
                    run_line(self.context, shlex.join(["", *words]), self.opened.root)
                except (RagistryError, typer.Exit) as error:  # the source went meanwhile
                    error_line(str(error))
                self.out.print(f"\nQuestion: {question}\n{KEYS}")
            elif key != "?":
                error_line(f"{key!r} is none of these keys", label="note")
        return key

    def print_plan(self, now: Decision, was: int) -> None:
        """Say what the questions can show; ``was``: their number before the first look."""
        plan, minutes = self.made.plan, (now.total - now.questions) * 2 / 5  # five passages of some five seconds each
        if was:
            self.out.print(f"\nA difference of {plan['margin']} needs {now.total:,} questions in place of {was}.")
        self.out.print(f"{plan['default']} against {plan['challenger']}, about {minutes:,.0f} minutes.")
        self.out.print(f"{_can_show(now.total, DEVIATION)}.")

    def print_result(self, dropped: int) -> Decision:
        """Say what the grades decide, and what they can show."""
        from ragistry.evaluation.statistics import mean_intervals

        made, found, rows = self.made, self.decision(), self.made.differences()
        interval = (
            f"RR@3 {found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}] after {found.questions} questions"
        )
        said = {
            "challenger": f"Use {made.plan['challenger']}: {interval}.",
            "default": f"Keep {made.plan['default']}: {interval}.",
            "not decided": f"Not decided, so {made.plan['default']} stays: {interval}.",
            "open": f"Not decided yet: {found.questions} of {found.total} questions, next look at {found.next_look}.",
        }
        self.out.print(f"\n{said[found.outcome]}")
        if found.outcome != "open":
            deviation, gain = sqrt(sum(one**2 for one in rows) / len(rows)), made.differences("nDCG@3")
            equal = sum(not made.candidates[one].needed for one in made.complete())
            can = f"; {_can_show(found.total, deviation)}" if deviation else ", and no question shows a difference"
            self.out.print(f"Lists are equal for {equal} of {len(rows)}{can}.")
            self.out.print(f"nDCG@3, without a verdict: {sum(gain) / len(gain):+.3f}.")
        if twice := made.agreement():
            [(low, high)] = mean_intervals([twice])
            self.out.print(f"Same grade twice: {sum(twice):.0f} of {len(twice)} [{low:.0%}, {high:.0%}].")
        if dropped:
            self.out.print(f"{numbered(dropped, '[grade is|grades are]')} of texts that changed, and not used.")
        return found


def _typed() -> str:
    """Return the next key, also one that was pressed before; empty at the end of the input."""
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    tty.setcbreak(handle, termios.TCSADRAIN)
    try:
        while not _is_waiting(0.5):  # Ctrl+Z gives the terminal to a shell, which changes it
            tty.setcbreak(handle, termios.TCSADRAIN)
        key = os.read(handle, 1)
        if key == b"\x1b":  # the rest of an arrow or of another key
            if _is_waiting(0.05):
                os.read(handle, 16)
            return "?"
        if key >= b"\xc2":  # a letter of another layout
            key += os.read(handle, 1 + (key >= b"\xe0") + (key >= b"\xf0"))
        return key.decode("utf-8", "replace").lower()
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def _typed_questions() -> list[str]:
    """Return the questions of a line, or of several that were pasted; none for an empty line, q or the end."""
    typer.echo("A question (Enter ends): ", nl=False)
    lines = [sys.stdin.readline()]
    while lines[-1] and _is_waiting(0.05):
        lines.append(sys.stdin.readline())
    texts = [" ".join(line.split()) for line in lines]
    for text in texts:
        if not text.isprintable():
            error_line(f"{text!r} is not a question; type words", label="note")
    return [text for text in texts if text.isprintable() and text not in ("", "q")]


def _is_waiting(seconds: float) -> bool:
    return bool(select([sys.stdin], [], [], seconds)[0])


def _can_show(questions: int, deviation: float) -> str:
    from ragistry.evaluation.stopping import shown

    return f"{numbered(questions, '[question shows|questions show]')} a difference of {shown(questions, deviation):.2f}"


def _apply(opened: Workspace, name: str, *, dry_run: bool) -> None:
    """Show the change of techniques.yaml, and write it if the person agrees."""
    from ragistry.config.replacing import replace_text
    from ragistry.config.settings import CONFIG_FOLDER, DEFAULTS
    from ragistry.config.yaml_edits import with_value

    path = opened.root / CONFIG_FOLDER / "techniques.yaml"
    before = (path if path.exists() else DEFAULTS / path.name).read_bytes().decode("utf-8")
    after = with_value(before, "default", name)
    lines = [*unified_diff(before.splitlines(), after.splitlines(), path.name, path.name, "", "", 0, "")]
    console().print("\n".join(lines))
    if dry_run:
        return
    console().print("Write it? y yes   any other key no")
    if _typed() == "y":
        path.parent.mkdir(exist_ok=True)
        replace_text(path, after)
        old, new = ([_ESCAPED.sub(r"\\\g<0>", one[1:]) for one in lines[2:] if one[0] == sign] for sign in "-+")
        undo = f"s/^{new[0]}/{old[0]}/" if old else f"/^{new[0]}/d"
        console().print(f"To undo: sed -i.bak {shlex.quote(undo)} {shlex.quote(str(path))}")
