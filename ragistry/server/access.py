"""Who may ask the server for what: tokens with rights and collections, in config/tokens.yaml.

The file holds the hash of each secret, never the secret. It is read again after each change, so that a token that was
removed is refused at once.
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
from ragistry.utils.wording import did_you_mean, listed

Right = Literal["read", "write", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)
HEADER = (
    "# Tokens of `ragistry serve`: hashes, not secrets. `ragistry serve token` adds one; delete a line to revoke it.\n"
)
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what is allowed. ``collections``: all that can be reached; None: every one.

    ``admin`` includes the other rights. ``write`` does not include ``read``.
    """

    name: str
    rights: frozenset[Right]
    collections: frozenset[str] | None = None

    @property
    def limited(self) -> bool:
        """Whether some collections are out of reach."""
        return self.collections is not None

    def may(self, right: Right) -> bool:
        """Whether the caller has a right."""
        return right in self.rights or "admin" in self.rights

    def check(self, right: Right) -> None:
        """Raise `AccessDeniedError` where the right is missing."""
        if not self.may(right):
            raise AccessDeniedError(f"the token {self.name!r} lacks the right {right!r}; use one that has it")

    def check_unlimited(self, what: str) -> None:
        """Raise `AccessDeniedError` for a caller that is limited to some collections."""
        if self.limited:
            raise AccessDeniedError(
                f"{what} needs every collection, and the token {self.name!r} is limited to some; use one without limits"
            )

    def reach(self, library: DocumentService) -> Reach:
        """The collections that the caller can search, as documents.yaml now has them."""
        if self.collections is None:
            return Reach(library)
        known = [entry.name for entry in library.collections.entries()]
        return Reach(library, [name for name in known if name in self.collections])

    def check_collection(self, library: DocumentService, name: str) -> None:
        """Raise `CollectionNotFoundError`, in the same words whether a collection is out of reach or not there."""
        names = self.reach(library).names()
        if name not in names:
            raise CollectionNotFoundError(
                f"no collection {name!r}{did_you_mean(name, names)}; there are {listed(names)}"
            )

    def where(self, library: DocumentService, asked: Where | None) -> Where | None:
        """The condition ``asked`` for, within the caller's reach."""
        limit = self.reach(library).where()
        if limit is None or asked is None:
            return limit if asked is None else asked
        return {"$and": [limit, asked]}


ANYBODY = Caller("anybody on this machine", frozenset(RIGHTS))
"""The caller where no token is needed."""


def _in_utc(moment: datetime | None) -> datetime | None:
    return moment if moment is None or moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class TokenEntry(Strict):
    """One token."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the secret, hexadecimal, in quotes")
    rights: list[Right] = Field(min_length=1, description="read, write, admin")
    collections: list[str] | None = Field(default=None, description="what can be reached; left out: every collection")
    expires: Annotated[datetime | None, AfterValidator(_in_utc)] = Field(
        default=None, description="when it stops working; UTC where no zone is given"
    )


class TokensFile(Strict):
    """config/tokens.yaml."""

    tokens: dict[Annotated[str, Field(pattern=NAME)], TokenEntry] | None = Field(
        default=None, description="the tokens, by name"
    )


class Tokens:
    """config/tokens.yaml of a workspace. Every method raises `InvalidConfigError` while the file is broken."""

    def __init__(self, root: Path) -> None:
        self.path = root / CONFIG_FOLDER / TOKENS_FILE
        self._read: tuple[tuple[int, ...] | None, dict[str, TokenEntry]] = (None, {})

    def entries(self) -> dict[str, TokenEntry]:
        """The tokens by name; empty without a file."""
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
        """Whose secret it is. Raises `AccessDeniedError`. Takes the same time for every secret."""
        digest, found = sha256(secret.encode("utf-8", "surrogateescape")).hexdigest(), None
        for name, entry in self.entries().items():
            if hmac.compare_digest(digest, entry.sha256):
                found = name, entry
        if found is None:
            raise AccessDeniedError("the token is not known; check it, or ask for another")
        name, entry = found
        if entry.expires is not None and entry.expires <= datetime.now(UTC):
            raise AccessDeniedError(f"the token {name!r} expired at {entry.expires.isoformat()}; ask for another")
        collections = None if entry.collections is None else frozenset(entry.collections)
        return Caller(name, frozenset(entry.rights), collections)

    def add(
        self,
        name: str,
        rights: Sequence[str],
        collections: Sequence[str] | None = None,
        expires: datetime | None = None,
    ) -> str:
        """Write a new token to the file and return its secret, which is not kept. Raises `ConfigError`."""
        if not re.fullmatch(NAME, name):
            raise ConfigError(f"{name!r} cannot name a token; use 1 to 63 letters, digits, '_' and '-'")
        if name in self.entries():
            raise ConfigError(f"there is a token {name!r} in {self.path}; choose another name, or delete its line")
        secret = secrets.token_urlsafe(32)
        parts = [f'sha256: "{sha256(secret.encode()).hexdigest()}"', f"rights: [{', '.join(rights)}]"]
        parts += [] if collections is None else [f"collections: {json.dumps(list(collections))}"]
        parts += [] if expires is None else [f'expires: "{expires.isoformat()}"']
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else f"{HEADER}tokens:\n"
        text += f"{'' if text.endswith(chr(10)) else chr(10)}  {json.dumps(name)}: {{{', '.join(parts)}}}\n"
        self._replace(text, name)
        return secret

    def _replace(self, text: str, name: str) -> None:
        """Write the file, after the new text was read as one: a mistake must not lock out every other token."""
        trial = self.path.with_name(f".{self.path.name}.trial")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(trial, text)
            try:
                if _parsed(trial).keys() != {*self.entries(), name}:
                    raise InvalidConfigError("the token did not come below `tokens:`")
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
