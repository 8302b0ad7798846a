"""API keys in the settings, printed as stars."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, SecretStr


def _sendable(key: SecretStr) -> SecretStr:
    """The key without surrounding line ends; checked here, because an HTTP client would print an invalid key."""
    text = key.get_secret_value().strip()
    if not all(" " <= character <= "~" for character in text):
        raise ValueError("must be ASCII characters on one line; copy the key again")
    return SecretStr(text)


Key = Annotated[SecretStr, AfterValidator(_sendable)]


def text_of(key: SecretStr | None) -> str | None:
    """The plain key, to send it."""
    return None if key is None else key.get_secret_value()
