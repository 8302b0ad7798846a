"""Refuse options that contradict each other or have no effect together, instead of choosing silently."""

from __future__ import annotations

import typer


class FlagsError(typer.BadParameter):
    """Two options that cannot be combined."""

    def format_message(self) -> str:
        return self.message


def refuse_together(context: typer.Context, one: str, *others: str) -> None:
    """Raise `FlagsError` if the option of the parameter ``one`` and one of the ``others`` are both given."""
    for other in others:
        if _is_given(context, one) and _is_given(context, other):
            raise FlagsError(f"{_option(context, other)} cannot be combined with {_option(context, one)}")


def refuse_without(context: typer.Context, one: str, *others: str) -> None:
    """Raise `FlagsError` if an option of the ``others`` is given without that of ``one``."""
    for other in others:
        if _is_given(context, other) and not _is_given(context, one):
            useless, missing = _option(context, other), _option(context, one)
            raise FlagsError(f"{useless} does nothing without {missing}; add it, or remove {useless}")


def refuse_all_but(context: typer.Context, mode: str, *read: str) -> None:
    """Raise `FlagsError` if an option is given that a mode does not read.

    Args:
        context: The command and what was given.
        mode: The mode as the user selects it, such as ``--plan``.
        read: Names of the parameters that it reads.
    """
    for parameter in context.command.params:
        name = str(parameter.name)
        if name not in (*read, "debug") and _is_given(context, name):
            raise FlagsError(f"{_option(context, name)} cannot be combined with {mode}")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _option(context: typer.Context, name: str) -> str:
    [parameter] = [parameter for parameter in context.command.params if parameter.name == name]
    return parameter.opts[0]
