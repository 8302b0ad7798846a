"""Tokens of the server with their rights and collections, in config/tokens.yaml.

The file contains a hash of each secret. It is read again after each change, so that a removed token is refused
immediately.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, ValidationError

from ragistry.config.folder import TOKENS_FILE
from ragistry.config.problems import Problems
from ragistry.config.replacing import replace_text
from ragistry.config.settings import CONFIG_FOLDER, Strict
from ragistry.config.yaml_file import read_yaml
from ragistry.errors import AccessDeniedError, CollectionNotFoundError, ConfigError, InvalidConfigError
from ragistry.library.service import DocumentService
from ragistry.tools.reach import Reach
from ragistry.types import Where
from ragistry.utils.disk import remedy
from ragistry.utils.wording import no_collection

Right = Literal["read", "write", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)
HEADER = (
    "# Tokens of `ragistry serve` with hashes of their secrets. `ragistry serve token` adds one.\n"
    "# Delete a line to revoke its token.\n"
)
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, with its rights and collections (None: all).

    ``admin`` includes the other rights. ``write`` does not include ``read``.
    """

    name: str
    rights: frozenset[Right]
    collections: frozenset[str] | None = None

    @property
    def limited(self) -> bool:
        """Whether the caller is limited to some collections."""
        return self.collections is not None

    def may(self, right: Right) -> bool:
        """Return whether the caller has a right."""
        return right in self.rights or "admin" in self.rights

    def check(self, right: Right) -> None:
        """Raise `AccessDeniedError` if the right is missing."""
        if not self.may(right):
            raise AccessDeniedError(f"token {self.name!r} lacks the right {right!r}; use a token that has it")

    def check_unlimited(self, what: str) -> None:
        """Raise `AccessDeniedError` if the caller is limited to some collections. The message begins with ``what``."""
        if self.limited:
            raise AccessDeniedError(
                f"{what} needs access to all collections, but token {self.name!r} is limited; use an unlimited token"
            )

    def reach(self, library: DocumentService) -> Reach:
        """Return the collections of documents.yaml that the caller can search."""
        if self.collections is None:
            return Reach(library)
        known = [entry.name for entry in library.collections.entries()]
        return Reach(library, [name for name in known if name in self.collections])

    def check_collection(self, library: DocumentService, name: str) -> None:
        """Raise `CollectionNotFoundError`, with one message for missing and for inaccessible collections."""
        names = self.reach(library).names()
        if name not in names:
            raise CollectionNotFoundError(no_collection(name, names))

    def where(self, library: DocumentService, condition: Where | None) -> Where | None:
        """Combine a condition with the collections of the caller."""
        limit = self.reach(library).where()
        if limit is None or condition is None:
            return limit if condition is None else condition
        return {"$and": [limit, condition]}


LOCAL_CALLER = Caller("this machine", frozenset(RIGHTS))
"""The caller if no token is needed."""


class TokenEntry(Strict):
    """A token."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the secret, hexadecimal, in quotes")
    rights: list[Right] = Field(min_length=1, description="read, write, admin")
    collections: list[str] | None = Field(default=None, description="accessible collections; default: all")
    expires: Annotated[
        datetime | None, AfterValidator(lambda moment: moment and moment.replace(tzinfo=moment.tzinfo or UTC))
    ] = Field(default=None, description="expiry; UTC if it has no time zone")


class TokensFile(Strict):
    """config/tokens.yaml."""

    tokens: dict[Annotated[str, Field(pattern=NAME)], TokenEntry] | None = Field(
        default=None, description="the tokens, by name"
    )


class Tokens:
    """config/tokens.yaml of a workspace. All methods raise `InvalidConfigError` if the file is invalid."""

    def __init__(self, root: Path) -> None:
        self.path = root / CONFIG_FOLDER / TOKENS_FILE
        self._read: tuple[tuple[int, ...] | None, dict[str, TokenEntry]] = (None, {})

    def entries(self) -> dict[str, TokenEntry]:
        """Return the tokens by name; empty without a file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return {}
        version = status.st_ino, status.st_mtime_ns, status.st_size
        known = self._read
        if known[0] != version:
            self._read = known = (version, _parsed(self.path))
        return known[1]

    def caller(self, secret: str) -> Caller:
        """Return the caller of a secret. The comparison takes constant time.

        Raises:
            AccessDeniedError: The token is unknown or has expired.
        """
        digest, found = sha256(secret.encode("utf-8", "surrogateescape")).hexdigest(), None
        for name, entry in self.entries().items():
            if hmac.compare_digest(digest, entry.sha256):
                found = name, entry
        if found is None:
            raise AccessDeniedError("the token is unknown; check it, or request a new one")
        name, entry = found
        if entry.expires is not None and entry.expires <= datetime.now(UTC):
            raise AccessDeniedError(f"token {name!r} expired at {entry.expires.isoformat()}; request a new one")
        collections = None if entry.collections is None else frozenset(entry.collections)
        return Caller(name, frozenset(entry.rights), collections)

    def add(
        self,
        name: str,
        rights: Sequence[str],
        collections: Sequence[str] | None = None,
        expires: datetime | None = None,
    ) -> str:
        """Add a token to the file.

        Args:
            name: Name of the token.
            rights: Rights of the token.
            collections: Accessible collections; None: all.
            expires: Expiry; None: never.

        Returns:
            The secret, which is not stored.

        Raises:
            ConfigError: The name is invalid or in use, or the file cannot be written.
        """
        if not re.fullmatch(NAME, name):
            raise ConfigError(f"{name!r} is not a valid token name; use 1 to 63 letters, digits, '_' and '-'")
        if name in self.entries():
            raise ConfigError(f"token {name!r} already exists in {self.path}; choose another name, or delete its line")
        secret = secrets.token_urlsafe(32)
        parts = [f'sha256: "{sha256(secret.encode()).hexdigest()}"', f"rights: [{', '.join(rights)}]"]
        parts += [] if collections is None else [f"collections: {json.dumps(list(collections))}"]
        parts += [] if expires is None else [f'expires: "{expires.isoformat()}"']
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else f"{HEADER}tokens:\n"
        text += f"{'' if text.endswith(chr(10)) else chr(10)}  {json.dumps(name)}: {{{', '.join(parts)}}}\n"
        self._replace(text, name)
        return secret

    def _replace(self, text: str, name: str) -> None:
        """Check the new text, then write the file, so that a mistake does not lock out all tokens."""
        trial = self.path.with_name(f".{self.path.name}.trial")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(trial, text)
            try:
                if _parsed(trial).keys() != {*self.entries(), name}:
                    raise InvalidConfigError("the token is not below `tokens:`")
            except InvalidConfigError as error:
                raise ConfigError(
                    f"{self.path}: a token cannot be added ({error}); end the file with `tokens:`"
                ) from error
            finally:
                trial.unlink()
            replace_text(self.path, text)
            self.path.chmod(0o600)
        except OSError as error:
            raise ConfigError(f"cannot write {str(self.path)!r}: {error.strerror}; {remedy(error)}") from error


def _parsed(path: Path) -> dict[str, TokenEntry]:
    file, problems = read_yaml(path), Problems()
    try:
        return TokensFile.model_validate(file.data).tokens or {}
    except ValidationError as error:
        problems.add_validation(file, [], TokensFile, error)
        problems.report()
        raise
