"""Addresses of web pages and servers; logins and keys in them are never shown."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ragistry.errors import ConfigError

_USER = re.compile(r"^(\s*[A-Za-z][\w+.-]*://|)([^/?#]*)@")
_QUERY = re.compile(r"[?#].*", re.DOTALL)
_PAGE = re.compile(r"https?://", re.IGNORECASE)
_ENDPOINT = re.compile(
    r"(?<=[^/])(?:/chat/completions|(?<=/v\d)/(?:completions|responses|embeddings|rerank|models)|"
    r"/api/(?:chat|generate|embed|embeddings|tags|show|version))$",
    re.IGNORECASE,
)
_UNNAMED = re.compile(r"[^\w.]+")
_AFTER_PATH = re.compile(r"^(\s*[A-Za-z][\w+.-]*://|).*@", re.DOTALL)


LONGEST_NAME = 100
"""Maximum characters of a name derived from a URL."""


def is_url(text: object) -> bool:
    """Return whether this is the address of a web page, not a path."""
    return isinstance(text, str) and _PAGE.match(text) is not None


def url_name(url: str, suffix: str) -> str:
    """Derive the name of a page from its URL.

    ``https://docs.example.com/install?os=linux`` becomes ``docs.example.com-install-os-linux.html``. The end of a long
    name is replaced by a hash.
    """
    parts = urlsplit(url)
    whole = unquote("-".join(filter(None, (parts.netloc + parts.path, parts.query))))
    name = _UNNAMED.sub("-", whole).strip("-.").removesuffix(suffix)
    if len(name) > LONGEST_NAME:
        name = f"{name[:LONGEST_NAME]}-{sha256(whole.encode()).hexdigest()[:8]}"
    return name + suffix


def base_address(url: str) -> str:
    """Return the address of a server without a slash at its end, and without the path of one of its endpoints."""
    return _ENDPOINT.sub("", url.strip().rstrip("/"))


class Login(NamedTuple):
    """The user name and password before the ``@`` of an address."""

    user: str
    password: str

    @property
    def header(self) -> str:
        """The value of ``Authorization`` that sends it (RFC 7617)."""
        return f"Basic {b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


def split_login(url: str) -> tuple[str, Login | None]:
    """Split an address, with or without a scheme, into the address without login, and the login.

    Raises:
        ConfigError: The address has a later ``@``, which may belong to a password with an unescaped character.
    """
    match = _USER.match(url)
    rest = url[match.end() :] if match else url
    if "@" in rest:
        raise ConfigError(
            f"the address {public_url(url)!r} has a '/', '?' or '#' before its '@'; write %2F, %3F or %23 in a "
            "password, and %40 for an '@' that is part of a path"
        )
    if match is None:
        return url, None
    user, _, password = match[2].partition(":")
    return match[1] + rest, Login(unquote(user), unquote(password))


def public_url(url: str) -> str:
    """Return an address without login, query and fragment, so that it may be shown.

    Of an address with a later ``@``, such as after an unescaped ``/`` in a password, only the part after it is kept.
    """
    return _QUERY.sub("", _AFTER_PATH.sub(r"\1…@", _USER.sub(r"\1", url)))
