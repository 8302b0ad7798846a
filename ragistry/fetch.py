"""Fetch web pages: robots.txt is respected, and addresses, size, redirects and time are limited."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import PurePosixPath
from time import monotonic
from typing import NamedTuple
from urllib.robotparser import RobotFileParser

import httpx

from ragistry import __version__
from ragistry.errors import SourceError, SourceNotFoundError, UnsupportedFormatError
from ragistry.readers.extracted import ExtractLimits
from ragistry.readers.formats import SUPPORTED_FORMATS, UNREAD_FORMATS
from ragistry.readers.text_files import SAMPLE, is_text
from ragistry.transport import limited_client, limits, read_body
from ragistry.utils.urls import public_url

AGENT = "ragistry"
"""The name of this program in robots.txt."""
REDIRECTS = 5
ROBOTS_LIMIT = 500_000
"""Maximum size of a robots.txt in bytes; RFC 9309 requires at least this."""

MAPPED, NAT64 = IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96")
"""IPv6 addresses that lead to the IPv4 address in their last 32 bits: of this machine's sockets, and by a gateway."""
UNICAST = IPv6Network("2000::/3")
"""All other public IPv6 addresses. So site-local and IPv4-compatible ones and gateways of a local network are not."""
SPECIAL = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
            "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
            "203.0.113.0/24", "224.0.0.0/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
        ),
    )
)  # fmt: skip
"""The networks of IANA's registries of special-purpose addresses that are not public, and multicast; of IPv6, those
within `UNICAST`. Among them are Teredo and 6to4, some of which lead to an IPv4 address of any kind. Each version of
`ipaddress` knows others.
"""

_OFFICE = "application/vnd.openxmlformats-officedocument"
SUFFIXES = {
    "text/html": ".html",
    "application/xhtml+xml": ".xhtml",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/xml": ".xml",
    "application/xml": ".xml",
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/rtf": ".rtf",
    "application/epub+zip": ".epub",
    "message/rfc822": ".eml",
    "application/vnd.oasis.opendocument.text": ".odt",
    "application/vnd.oasis.opendocument.spreadsheet": ".ods",
    f"{_OFFICE}.wordprocessingml.document": ".docx",
    f"{_OFFICE}.presentationml.presentation": ".pptx",
    f"{_OFFICE}.spreadsheetml.sheet": ".xlsx",
}
"""The suffix of each content type; for other text and for untyped bytes, the suffix of the URL is used."""


class FetchedPage(NamedTuple):
    """The content of a page, text in UTF-8, and the suffix of its format."""

    data: bytes
    suffix: str


class _Answer(NamedTuple):
    url: httpx.URL
    status: int
    headers: httpx.Headers
    data: bytes


class Fetcher:
    """Fetches pages. Proxies of the environment are not used.

    Args:
        limits: Limits of bytes and seconds of a page.
        allow_private: Also connect to addresses that are not public, directly or by a redirect.
    """

    def __init__(self, limits: ExtractLimits, *, allow_private: bool = False) -> None:
        self.limits = limits
        self.allow_private = allow_private
        self._robots: dict[str, RobotFileParser] = {}
        self._http = limited_client(
            timeout=limits.seconds, headers={"User-Agent": f"{AGENT}/{__version__}"}, trust_env=False
        )

    def fetch(self, url: str) -> FetchedPage:
        """Fetch the page at a URL. Raises `SourceError`, which names the URL."""
        try:
            address = httpx.URL(url).copy_with(fragment=None)
        except httpx.InvalidURL as error:
            raise SourceError(f"{url!r} is not a URL ({error}); write https://HOST/PATH") from error
        if address.userinfo or not address.host:
            raise SourceError(f"{public_url(url)!r} is not the URL of a page without login; write https://HOST/PATH")
        answer = self._follow(address, self.limits.bytes, monotonic() + self.limits.seconds, as_robot=True)
        if answer.status in (404, 410):
            raise SourceNotFoundError(f"{url!r} answered {answer.status}: no such page; check the address")
        if answer.status != 200:
            raise SourceError(
                f"{url!r} answered {answer.status}; check in a browser that the page can be read without a login, "
                "or try again later"
            )
        return _page(url, answer)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _follow(self, url: httpx.URL, limit: int, ends: float, *, as_robot: bool) -> _Answer:
        """Follow redirects to their end, and check each address."""
        first = url
        for _ in range(REDIRECTS + 1):
            with _translated(first):
                if url.scheme not in ("http", "https") or not url.host:
                    raise SourceError(f"it redirects to {public_url(str(url))!r}, which is not a page; correct the URL")
                if as_robot:
                    self._check_robots(url, ends)
                answer = self._get(url, limit, ends)
                if answer.status not in (301, 302, 303, 307, 308) or "Location" not in answer.headers:
                    return answer
                url = url.join(answer.headers["Location"])
        raise SourceError(f"{str(first)!r} has more than {REDIRECTS} redirects; use the URL of the last page")

    def _check_robots(self, url: httpx.URL, ends: float) -> None:
        origin = url.copy_with(raw_path=b"/robots.txt", fragment=None)
        rules = self._robots.get(str(origin))
        if rules is None:
            answer = self._follow(origin, ROBOTS_LIMIT, ends, as_robot=False)
            if answer.status >= 500:
                raise SourceError(f"{str(url)!r}: {str(origin)!r} answered {answer.status}; try again later")
            rules = self._robots[str(origin)] = RobotFileParser()
            rules.parse(answer.data.decode(errors="replace").splitlines() if answer.status == 200 else [])
        if not rules.can_fetch(AGENT, str(url)):
            raise SourceError(
                f"{str(url)!r} must not be fetched by programs, according to {str(origin)!r}; save the page in a "
                "browser and ingest the file"
            )

    def _get(self, url: httpx.URL, limit: int, ends: float) -> _Answer:
        unreachable = None
        for address in self._addresses(url):
            # Connect to the checked address: another lookup of the name may return a different one.
            request = self._http.build_request(
                "GET",
                url.copy_with(host=address),
                headers={"Host": url.netloc.decode()},
                extensions={"sni_hostname": url.raw_host.decode(), **limits(ends)},
            )
            try:
                response = self._http.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                unreachable = error
                continue
            try:
                body = read_body(response, limit)
                if len(body) > limit:
                    raise SourceError(f"it has more than {limit:,} bytes, the limit; raise limits.megabytes")
                return _Answer(url, response.status_code, response.headers, body)
            finally:
                response.close()
        assert unreachable is not None
        raise unreachable

    def _addresses(self, url: httpx.URL) -> list[str]:
        host = url.raw_host.decode()
        try:
            found = socket.getaddrinfo(host, url.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise SourceError(f"{str(url)!r}: the host {host!r} is unknown; check the URL and the network") from error
        addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
        for address in addresses:
            if not self.allow_private and not _is_public(address):
                raise SourceError(
                    f"{str(url)!r} leads to {address}, which is not a public address; add --allow-private to fetch it"
                )
        return addresses


def _is_public(address: str) -> bool:
    """Return whether an address is public. An IPv6 address that only wraps an IPv4 address is judged by that one."""
    ip = ip_address(address)
    if isinstance(ip, IPv6Address):
        if ip in MAPPED or ip in NAT64:
            ip = IPv4Address(int(ip) & 0xFFFF_FFFF)
        # RFC 5214: the host part may be an IPv4 address of a tunnel
        elif ip not in UNICAST or int(ip) >> 32 & 0xFDFF_FFFF == 0x5EFE or ip.scope_id:
            return False
    return not any(ip in network for network in SPECIAL)


@contextmanager
def _translated(url: httpx.URL) -> Iterator[None]:
    """Translate every exception of httpx in the block to a `SourceError` that names the URL."""
    try:
        yield
    except httpx.TimeoutException as error:
        raise SourceError(f"{str(url)!r} was not fetched in time; try again later, or raise limits.seconds") from error
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        raise SourceError(f"{str(url)!r} cannot be fetched ({error}); check the address and the network") from error
    except SourceError as error:
        if str(url) in str(error):
            raise
        raise SourceError(f"{str(url)!r}: {error}") from error


def _page(url: str, answer: _Answer) -> FetchedPage:
    """Convert an answer to a page. Raises `UnsupportedFormatError`."""
    kind, _, parameters = answer.headers.get("Content-Type", "").partition(";")
    kind = kind.strip().lower()
    suffix, named = SUFFIXES.get(kind, ""), PurePosixPath(answer.url.path).suffix.lower()
    if not suffix and (kind in ("", "application/octet-stream") or kind.startswith("text/")):
        sample = answer.data[:SAMPLE]
        is_plain = kind.startswith("text/") or (sample and named not in UNREAD_FORMATS and is_text(sample))
        suffix = named if named in SUPPORTED_FORMATS else ".txt" if is_plain else ""
    if not suffix:
        content = f"the content type {kind!r}" if kind else "no content type"
        raise UnsupportedFormatError(
            f"{url!r} has {content}, which is not supported; save it as PDF, HTML or text and ingest the file"
        )
    data = answer.data
    charset = httpx.Response(200, headers={"Content-Type": f"text/plain;{parameters}"}).charset_encoding
    if charset and kind.startswith("text/"):  # it overrides the encoding that the page says
        # not an encoding of text in Python, such as `idna` and `undefined`
        with suppress(LookupError, UnicodeError):
            data = data.decode(charset, "replace").encode()
    return FetchedPage(data, suffix)
