"""Pages are fetched as robots.txt allows, from addresses that are checked, within limits."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from ragistry.errors import SourceError, SourceNotFoundError, UnsupportedFormatError
from ragistry.fetch import REDIRECTS, Fetcher, Page
from ragistry.utils.extracted import ExtractLimits
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


def fetch(url: str, allow_private: bool = True, **limits: Any) -> Page:
    with closing(Fetcher(ExtractLimits(**limits), allow_private=allow_private)) as fetcher:
        return fetcher.fetch(url)


def refusal(url: str, kind: type[SourceError] = SourceError, **how: Any) -> str:
    with pytest.raises(kind) as refused:
        fetch(url, **how)
    said = str(refused.value)
    assert url in said
    assert len(said.splitlines()) == 1
    assert "; " in said
    return said


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
def test_the_content_type_decides_the_format(served: Site, path: str, kind: str, suffix: str) -> None:
    assert fetch(served.put(path, "Tea.", kind)) == (b"Tea.", suffix)


def test_what_has_no_reader_is_refused(served: Site) -> None:
    assert "'image/png'" in refusal(served.put("/a.png", b"", "image/png"), UnsupportedFormatError)
    assert "no content type" in refusal(served.put("/a", b"", ""), UnsupportedFormatError)


def test_text_becomes_utf_8(served: Site) -> None:
    url = served.put("/a", "Grüße".encode("iso-8859-1"), "text/html; charset=ISO-8859-1")
    assert fetch(url).data.decode() == "Grüße"


def test_robots_txt_is_asked_once_and_respected(served: Site) -> None:
    served.put("/robots.txt", "User-agent: *\nDisallow: /private/\n", "text/plain")
    allowed, forbidden = served.put("/open/a", "Tea."), served.put("/private/a", "Tea.")
    with closing(Fetcher(ExtractLimits(), allow_private=True)) as fetcher:
        assert fetcher.fetch(allowed).data == fetcher.fetch(allowed).data == b"Tea."
        with pytest.raises(SourceError, match="may not be fetched by programs"):
            fetcher.fetch(forbidden)
    assert served.asked == ["/robots.txt", "/open/a", "/open/a"]
    served.put("/out", "", status=302, Location="/private/a")
    assert "/private/a" in refusal(served.url + "/out")
    served.put("/robots.txt", "", status=503)
    assert "answered 503" in refusal(allowed)


def test_redirects_are_followed_and_counted(served: Site) -> None:
    served.put("/first", "", status=301, Location="second")
    served.put("/second", "Tea.")
    assert fetch(served.url + "/first#part").data == b"Tea."
    served.put("/loop", "", status=302, Location="/loop")
    assert f"more than {REDIRECTS} redirects" in refusal(served.url + "/loop")
    served.put("/file", "", status=302, Location="file:///etc/passwd")
    assert "it leads to 'file:/etc/passwd', which is not a page" in refusal(served.url + "/file")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://localhost/", "http://10.1.2.3/", "http://169.254.169.254/", "http://[::1]/",
            "http://[::ffff:127.0.0.1]/", "http://100.64.0.1/", "http://0.0.0.0/", "http://2130706433/"],
)  # fmt: skip
def test_no_private_address_is_connected_to(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*arguments: object, **options: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket, "create_connection", connect)
    assert "is not a public address" in refusal(url, allow_private=False)


def test_each_redirect_is_checked_and_the_checked_address_is_used(
    served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server may answer otherwise the second time; the connection goes to what it answered the first."""
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
    assert "leads to 10.0.0.1" in refusal(f"{served.url}/inside", allow_private=False)


def test_limits_of_size_and_time_hold(served: Site) -> None:
    assert "more than 1,000 bytes" in refusal(served.put("/large", "x" * 2_000), bytes=1_000)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert "not fetched in time" in refusal(f"http://127.0.0.1:{silent.getsockname()[1]}/", seconds=0.2)


def test_what_is_not_there_is_named(served: Site) -> None:
    refusal(served.url + "/nowhere", SourceNotFoundError)
    assert "answered 403" in refusal(served.put("/closed", "", status=403))
    assert "cannot be fetched" in refusal("http://127.0.0.1:1/")
    assert "is not known" in refusal("http://nowhere.invalid/")
    for wrong in ("http:///a", "http://tea.example:port/"):
        refusal(wrong)
    with pytest.raises(SourceError, match="'https://127.0.0.1/a' is not the address of a page without login"):
        fetch("https://user:word@127.0.0.1/a")
