"""Who is let in, and who is not: the guard by itself, over a small application."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from ragistry.errors import SourceError
from ragistry.web.intake import safe_name
from ragistry.web.security import LOOPBACK, Guard
from tests.web.conftest import served


async def hello(request: object) -> PlainTextResponse:
    return PlainTextResponse("hello")


async def talk(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


def client(token: str | None = None, base: str = "http://127.0.0.1:8080") -> TestClient:
    app = Starlette(routes=[Route("/", hello, methods=["GET", "POST"]), WebSocketRoute("/ws", talk)])
    return TestClient(Guard(app, hosts=LOOPBACK, token=token), base_url=base, follow_redirects=False)


@pytest.mark.parametrize("base", ["http://127.0.0.1:8080", "http://localhost:1", "http://[::1]:99"])
def test_every_loopback_name_is_served(base: str) -> None:
    assert client(base=base).get("/").text == "hello"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost@evil.example"])
def test_a_foreign_host_is_refused(host: str) -> None:
    answer = client().get("/", headers={"host": host})
    assert (answer.status_code, "is not served here" in answer.text) == (403, True)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://127.0.0.1"])
def test_a_foreign_origin_may_not_change_anything(origin: str) -> None:
    assert client().post("/", headers={"origin": origin}).status_code == 403
    with pytest.raises(WebSocketDisconnect), client().websocket_connect("/ws", headers={"origin": origin}):
        pass


def test_the_own_origin_may() -> None:
    headers = {"origin": "http://127.0.0.1:8080"}
    assert client().post("/", headers=headers).status_code == 200
    url = "ws://127.0.0.1:8080/ws"
    with client().websocket_connect(url, headers=headers | {"host": "127.0.0.1:8080"}) as socket:
        assert socket.receive_text() == "hello"


def test_a_form_of_another_site_is_refused_without_an_origin_too() -> None:
    assert client().post("/", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client().post("/").status_code == 200, "a program has neither"


def test_with_a_token_nothing_is_answered_without_it() -> None:
    window = client(token="secret")
    assert window.get("/").status_code == 401
    assert window.get("/?token=wrong").status_code == 401
    with pytest.raises(WebSocketDisconnect), window.websocket_connect("/ws"):
        pass


def test_the_token_is_kept_in_a_cookie_and_leaves_the_address() -> None:
    window = client(token="secret")
    entered = window.get("/?q=frost&token=secret")
    assert (entered.status_code, entered.headers["location"]) == (303, "/?q=frost")
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "SameSite=Lax" in entered.headers["set-cookie"]
    assert window.get("/").text == "hello"


@pytest.mark.parametrize("before", ["other/app=1; ", 'a@b="x; ', "not a cookie; ", ""])
def test_cookies_of_other_programs_are_in_nobodys_way(before: str) -> None:
    """A browser sends the cookies of every port of a machine."""
    assert client(token="secret").get("/", headers={"cookie": f"{before}ragistry_token_8080=secret"}).text == "hello"
    assert client(token="secret").get("/", headers={"cookie": f"{before}ragistry_token_8080=wrong"}).status_code == 401


@pytest.mark.parametrize(
    ("path", "target"), [("//evil.example/", "/evil.example/"), ("/compare/%E6%97%A5%0d", "/compare/%E6%97%A5%0D")]
)
def test_the_token_leads_to_no_other_host_and_to_no_header(path: str, target: str) -> None:
    entered = client(token="secret").get(f"http://127.0.0.1:8080{path}?token=secret")
    assert (entered.status_code, entered.headers["location"]) == (303, target)


@pytest.mark.parametrize("headers", [{"content-length": "2000000001"}, {"transfer-encoding": "chunked"}])
def test_a_body_past_the_limit_is_refused_before_it_is_read(headers: dict[str, str]) -> None:
    answer = client().post("/", headers=headers)
    assert (answer.status_code, "add fewer files at once" in answer.text) == (413, True)


def test_answers_may_not_be_framed_or_embedded_by_another_site() -> None:
    headers = client().get("/").headers
    assert (headers["x-frame-options"], headers["cross-origin-resource-policy"]) == ("DENY", "same-origin")


def test_any_other_address_than_loopback_needs_the_printed_token(root: Path) -> None:
    import httpx

    with served(root, "--host", "127.0.0.2") as address:
        bare, token = address.split("?token=")
        assert httpx.get(bare, timeout=10).status_code == 401
        port = httpx.URL(bare).port
        assert httpx.get(bare, cookies={f"ragistry_token_{port}": token}, timeout=10).status_code == 200


def test_the_printed_address_opens_when_it_is_clicked_on_another_site(page: Page, root: Path) -> None:
    with served(root, "--host", "127.0.0.2") as address:
        link = f'<a href="{address}">the library</a>'
        page.route("http://127.0.0.1:9/mail", lambda route: route.fulfill(body=link, content_type="text/html"))
        page.goto("http://127.0.0.1:9/mail")
        page.get_by_role("link").click()
        expect(page.get_by_role("heading", name="Search your library")).to_be_visible()
        page.goto("http://127.0.0.1:9/mail")
        page.get_by_role("link").click()
        expect(page.get_by_role("heading", name="Search your library")).to_be_visible()


def test_two_pages_of_one_machine_each_keep_their_own_token(browser: Browser, root: Path, library: Path) -> None:
    with (
        served(root, "--host", "127.0.0.2") as one,
        served(library, "--host", "127.0.0.2") as other,
        browser.new_context() as context,
    ):
        window = context.new_page()
        for address in (one, other):
            assert window.goto(address).status == 200
        assert window.goto(one.split("?")[0]).status == 200


def named(base: str = "http://127.0.0.1:8080") -> TestClient:
    app = Starlette(routes=[Route("/", hello, methods=["GET", "POST"]), WebSocketRoute("/ws", talk)])
    return TestClient(Guard(app, hosts=LOOPBACK, names=["Library.example.org", "two.example:9101"]), base_url=base)


@pytest.mark.parametrize("host", ["library.example.org", "LIBRARY.example.org:9101", "127.0.0.1:8080"])
@pytest.mark.parametrize("origin", ["https://library.example.org", "http://two.example:9101"])
def test_a_proxy_may_keep_the_host_or_say_its_own(host: str, origin: str) -> None:
    headers = {"host": host, "origin": origin}
    assert named().post("/", headers=headers).status_code == 200
    with named().websocket_connect("/ws", headers=headers) as socket:
        assert socket.receive_text() == "hello"


@pytest.mark.parametrize("origin", ["https://library.example.org:8443", "https://evil.example", "http://two.example"])
def test_another_port_of_a_name_is_another_page(origin: str) -> None:
    assert named().post("/", headers={"origin": origin}).status_code == 403


@pytest.mark.parametrize(
    ("given", "name"),
    [("a.md", "a.md"), ("../../etc/passwd.txt", "passwd.txt"), ("C:\\x\\b.pdf", "b.pdf"), ("/abs/c.md", "c.md")],
)
def test_an_uploaded_file_keeps_only_its_bare_name(given: str, name: str) -> None:
    assert safe_name(given) == name


@pytest.mark.parametrize("given", ["", "..", ".hidden.md", "a\nb.md", "x" * 300 + ".md", "folder/"])
def test_a_name_that_cannot_name_a_source_is_refused(given: str) -> None:
    if given == "folder/":
        assert safe_name(given) == "folder"
        return
    with pytest.raises(SourceError):
        safe_name(given)
