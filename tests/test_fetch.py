"""Pages are fetched as robots.txt allows, from addresses that are checked, within limits."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from ipaddress import IPv4Address
from typing import Any

import pytest

from ragistry.errors import SourceError, SourceNotFoundError, UnsupportedFormatError
from ragistry.fetch import REDIRECTS, FetchedPage, Fetcher, _is_public
from ragistry.readers.extracted import ExtractLimits
from ragistry.testing.ports import refused_port
from tests.messages import refused
from tests.page_server import Site, site


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    with site() as served:
        yield served


@pytest.fixture
def served(server: Site) -> Site:
    server.pages.clear()
    server.asked.clear()
    server.hosts.clear()
    return server


def fetch(url: str, allow_private: bool = True, **limits: Any) -> FetchedPage:
    with closing(Fetcher(ExtractLimits(**limits), allow_private=allow_private)) as fetcher:
        return fetcher.fetch(url)


def check_refusal(url: str, *values: object, kind: type[SourceError] = SourceError, **how: Any) -> None:
    """Expect one line that names the URL, the values and a remedy."""
    with refused(kind, url, "; ", *values) as caught:
        fetch(url, **how)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("path", "kind", "suffix"),
    [
        ("/a", "text/html; charset=utf-8", ".html"),
        ("/a.md", "text/plain", ".md"),
        ("/a.unknown", "text/plain", ".txt"),
        ("/a.pdf", "application/octet-stream", ".pdf"),
        ("/a", "application/pdf", ".pdf"),
    ],
)
def test_content_type_decides_the_format(served: Site, path: str, kind: str, suffix: str) -> None:
    assert fetch(served.put(path, "Tea.", kind)) == (b"Tea.", suffix)


def test_content_without_a_reader_is_refused_and_text_becomes_utf_8(served: Site) -> None:
    check_refusal(served.put("/a.png", b"", "image/png"), "'image/png'", kind=UnsupportedFormatError)
    check_refusal(served.put("/a", b"", ""), "no content type", kind=UnsupportedFormatError)
    url = served.put("/a", "Grüße".encode("iso-8859-1"), "text/html; charset=ISO-8859-1")
    assert fetch(url).data.decode() == "Grüße"


def test_charset_that_is_no_encoding_of_text_is_ignored(served: Site) -> None:
    for charset in ("idna", "undefined", "rot13", "no-such-charset"):
        url = served.put("/a", "Grüße".encode(), f"text/html; charset={charset}")
        assert fetch(url).data.decode() == "Grüße"


def test_robots_txt_is_asked_once_and_respected(served: Site) -> None:
    served.put("/robots.txt", "User-agent: *\nDisallow: /private/\n", "text/plain")
    allowed, forbidden = served.put("/open/a", "Tea."), served.put("/private/a", "Tea.")
    with closing(Fetcher(ExtractLimits(), allow_private=True)) as fetcher:
        assert fetcher.fetch(allowed).data == fetcher.fetch(allowed).data == b"Tea."
        with refused(SourceError, forbidden, "robots.txt"):
            fetcher.fetch(forbidden)
    assert served.asked == ["/robots.txt", "/open/a", "/open/a"]
    served.put("/out", "", status=302, Location="/private/a")
    check_refusal(served.url + "/out", "/private/a")
    served.put("/robots.txt", "", status=503)
    check_refusal(allowed, 503)


def test_redirects_are_followed_and_counted(served: Site) -> None:
    served.put("/first", "", status=301, Location="second")
    served.put("/second", "Tea.")
    assert fetch(served.url + "/first#part").data == b"Tea."
    served.put("/loop", "", status=302, Location="/loop")
    check_refusal(served.url + "/loop", REDIRECTS)
    served.put("/file", "", status=302, Location="file:///etc/passwd")
    check_refusal(served.url + "/file", "'file:/etc/passwd'")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://localhost/", "http://10.1.2.3/", "http://169.254.169.254/", "http://[::1]/",
            "http://[::ffff:127.0.0.1]/", "http://100.64.0.1/", "http://0.0.0.0/", "http://2130706433/",
            "http://[64:ff9b::7f00:1]/", "http://[64:ff9b::a9fe:a9fe]/", "http://[64:ff9b:1::808:808]/",
            "http://[2002:7f00:1::]/", "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "http://[::127.0.0.1]/",
            "http://[::ffff:0:7f00:1]/", "http://[fec0::1]/", "http://[fd00::1]/", "http://[ff0e::1]/",
            "http://[2606:4700::5efe:a00:1]/", "http://[2606:4700::200:5efe:a00:1]/", "http://[2001:db8::1]/",
            "http://[3fff::1]/", "http://[5f00::1]/", "http://[100::1]/", "http://0x7f.1/"],
)  # fmt: skip
def test_private_address_is_not_connected_to(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*arguments: object, **options: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket, "create_connection", connect)
    check_refusal(url, "public address", allow_private=False)


@pytest.mark.parametrize(
    ("address", "public"),
    [("8.8.8.8", True), ("2606:4700:4700::1111", True), ("2a00:1450::1", True), ("64:ff9b::808:808", True),
     ("::ffff:8.8.8.8", True), ("fe80::1%lo", False), ("2606:4700::1%lo", False), ("64:ff9b::a00:1", False)],
)  # fmt: skip
def test_name_is_connected_to_at_a_public_address(address: str, public: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway of an IPv6 network wraps public IPv4 addresses."""
    tried = []

    def resolve(host: str, *_: Any, **__: Any) -> Any:
        return [(0, 0, 0, "", (address, 80))]

    def connect(to: tuple[str, int], *_: Any, **__: Any) -> None:
        tried.append(to[0])
        raise OSError("no network")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    check_refusal("http://tea.example/", allow_private=False)
    assert tried == [address] * public


def test_all_of_a_special_network_and_nothing_beside_it_is_private() -> None:
    special = """0.0.0.0-0.255.255.255 10.0.0.0-10.255.255.255 100.64.0.0-100.127.255.255 127.0.0.0-127.255.255.255
        169.254.0.0-169.254.255.255 172.16.0.0-172.31.255.255 192.0.0.0-192.0.0.255 192.0.2.0-192.0.2.255
        192.88.99.0-192.88.99.255 192.168.0.0-192.168.255.255 198.18.0.0-198.19.255.255 198.51.100.0-198.51.100.255
        203.0.113.0-203.0.113.255 224.0.0.0-255.255.255.255"""
    for network in special.split():
        first, last = map(IPv4Address, network.split("-"))
        inside = {first, last, *(first + (int(last) - int(first)) * part // 9 for part in range(9))}
        for wrapped in ("{}", "::ffff:{}", "64:ff9b::{}"):
            assert not any(_is_public(wrapped.format(address)) for address in inside), network
            beside = [int(first) - 1] * (int(first) > 0) + [int(last) + 1] * (int(last) < 0xFFFF_FFFF)
            assert all(_is_public(wrapped.format(IPv4Address(number))) for number in beside), network


def test_each_redirect_is_checked_and_its_checked_address_used(served: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server may give another answer the second time; the connection goes to the first address."""
    port, answers = int(served.url.rpartition(":")[2]), ["127.0.0.1", "127.0.0.1", "10.0.0.1"]
    real = socket.getaddrinfo

    def resolve(host: str, *more: Any, **options: Any) -> Any:
        return real(answers.pop(0) if host == "tea.example" else host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    served.put("/a", "Tea.")
    assert fetch(f"http://tea.example:{port}/a").data == b"Tea."
    assert (answers, served.hosts) == (["10.0.0.1"], {f"tea.example:{port}"})
    monkeypatch.setattr("ragistry.fetch._is_public", lambda address: address != "10.0.0.1")
    served.put("/inside", "", status=302, Location=f"http://tea.example:{port}/a")
    check_refusal(f"{served.url}/inside", "10.0.0.1", allow_private=False)


def test_limits_of_size_and_time_hold(served: Site) -> None:
    check_refusal(served.put("/large", "x" * 2_000), "1,000 bytes", bytes=1_000)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        check_refusal(f"http://127.0.0.1:{silent.getsockname()[1]}/", seconds=0.2)


def test_page_that_cannot_be_fetched_is_named(served: Site) -> None:
    check_refusal(served.url + "/nowhere", 404, kind=SourceNotFoundError)
    check_refusal(served.put("/closed", "", status=403), 403)
    for wrong in (
        f"http://127.0.0.1:{refused_port()}/",
        "http://nowhere.invalid/",
        "http:///a",
        "http://tea.example:x/",
    ):
        check_refusal(wrong)
    with refused(SourceError, "'https://127.0.0.1/a'"):
        fetch("https://user:word@127.0.0.1/a")
