"""Options that contradict one another, or do nothing together: an error that names both, instead of a silent choice."""

from __future__ import annotations

import typer


class FlagsError(typer.BadParameter):
    """Two options that do not fit."""

    def format_message(self) -> str:
        return self.message


def refuse_together(context: typer.Context, one: str, *others: str) -> None:
    """Raise `FlagsError` where the option of the parameter ``one`` is given, and that of one of the ``others`` too."""
    for other in others:
        if _is_given(context, one) and _is_given(context, other):
            raise FlagsError(f"{_option(context, other)} does nothing beside {_option(context, one)}; leave one out")


def refuse_without(context: typer.Context, one: str, *others: str) -> None:
    """Raise `FlagsError` where an option of the ``others`` is given, which does nothing without that of ``one``."""
    for other in others:
        if _is_given(context, other) and not _is_given(context, one):
            useless, missing = _option(context, other), _option(context, one)
            raise FlagsError(f"{useless} does nothing without {missing}; add that, or leave {useless} out")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _option(context: typer.Context, name: str) -> str:
    [parameter] = [parameter for parameter in context.command.params if parameter.name == name]
    return parameter.opts[0]
