"""API keys among the settings: what prints a setting prints stars."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, SecretStr


def _sendable(key: SecretStr) -> SecretStr:
    """Without the end of a line around it; told now, for who sends it would show it in the message."""
    text = key.get_secret_value().strip()
    if not all(" " <= character <= "~" for character in text):
        raise ValueError("must be ASCII characters on one line; copy the key anew")
    return SecretStr(text)


Key = Annotated[SecretStr, AfterValidator(_sendable)]


def text_of(key: SecretStr | None) -> str | None:
    """The key itself, for who sends it."""
    return None if key is None else key.get_secret_value()
