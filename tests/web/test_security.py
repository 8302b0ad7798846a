"""Who is let in, and who is not: the guard by itself, over a small application."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from ragistry.http.guard import LOOPBACK
from ragistry.web.app import guard_page
from tests.messages import check_message
from tests.web.conftest import served


async def hello(request: object) -> PlainTextResponse:
    return PlainTextResponse("hello")


async def talk(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


HERE = "http://127.0.0.1:8080"


def client(token: str | None = None, base: str = HERE, names: Sequence[str] = ()) -> TestClient:
    app = Starlette(routes=[Route("/", hello, methods=["GET", "POST"]), WebSocketRoute("/ws", talk)])
    return TestClient(
        guard_page(app, hosts=LOOPBACK, names=names, token=token), base_url=base, follow_redirects=False
    )  # fmt: skip


def test_other_hosts_than_loopback_are_refused() -> None:
    for base in (HERE, "http://localhost:1", "http://[::1]:99"):
        assert client(base=base).get("/").text == "hello"
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost@evil.example", "[", "[a]b"):
        answer = client().get("/", headers={"host": host})
        assert answer.status_code == 403
        check_message(answer.text, host)


def test_changes_from_other_origins_are_refused() -> None:
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999", "http://127.0.0.1", "http://["):
        assert client().post("/", headers={"origin": origin}).status_code == 403
        with pytest.raises(WebSocketDisconnect), client().websocket_connect("/ws", headers={"origin": origin}):
            pass
    assert client().post("/", headers={"origin": HERE}).status_code == 200
    with client().websocket_connect("/ws", headers={"origin": HERE, "host": "127.0.0.1:8080"}) as socket:
        assert socket.receive_text() == "hello"
    assert client().post("/", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client().post("/").status_code == 200, "a program has neither"


def test_token_is_asked_for_and_moves_from_the_address_to_a_cookie() -> None:
    window = client(token="secret")
    assert window.get("/").status_code == 401
    assert window.get("/?token=wrong").status_code == 401
    with pytest.raises(WebSocketDisconnect), window.websocket_connect("/ws"):
        pass
    entered = window.get("/?q=frost&token=secret")
    assert (entered.status_code, entered.headers["location"]) == (303, "/?q=frost")
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "SameSite=Lax" in entered.headers["set-cookie"]
    assert window.get("/").text == "hello"
    for path, target in (("//evil.example/", "/evil.example/"), ("/a/%E6%97%A5%0d", "/a/%E6%97%A5%0D")):
        entered = client(token="secret").get(f"{HERE}{path}?token=secret")  # no other host, and no header
        assert (entered.status_code, entered.headers["location"]) == (303, target)


@pytest.mark.parametrize("before", ["other/app=1; ", 'a@b="x; ', "not a cookie; ", ""])
def test_cookies_of_other_programs_are_ignored(before: str) -> None:
    """A browser sends the cookies of every port of a machine."""
    for token, status in (("secret", 200), ("wrong", 401)):
        headers = {"cookie": f"{before}ragistry_token_8080={token}"}
        assert client(token="secret").get("/", headers=headers).status_code == status


def test_large_body_is_refused_before_it_is_read_and_other_sites_cannot_embed_responses() -> None:
    for headers in ({"content-length": "2000000001"}, {"transfer-encoding": "chunked"}):
        answer = client().post("/", headers=headers)
        assert answer.status_code == 413
        check_message(answer.text)
    embedding = client().get("/").headers
    assert (embedding["x-frame-options"], embedding["cross-origin-resource-policy"]) == ("DENY", "same-origin")


def test_page_has_a_content_policy_and_its_socket_has_no_cors(page: Page, address: str) -> None:
    answer = page.goto("/")
    assert answer is not None
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "connect-src 'self'"} <= set(policy)
    page.wait_for_function("window.socket && window.socket.connected")
    for origin in ("http://evil.example", "null", address.rstrip("/")):
        asked = httpx.get(
            f"{address.rstrip('/')}/_nicegui_ws/socket.io/?EIO=4&transport=polling",
            headers={"Origin": origin},
            timeout=60,
        )
        assert not [name for name in asked.headers if name.startswith("access-control")]


def test_other_addresses_than_loopback_need_the_printed_token(page: Page, broken: str, tmp_path: Path) -> None:
    """The token is in the printed address, and pages on two ports of one machine each keep their own."""
    bare, token = broken.split("?token=")
    for path in ("", "v1/collections", "openapi.json"):
        assert httpx.get(f"{bare}{path}", timeout=60).status_code == 401
    assert httpx.get(bare, cookies={f"ragistry_token_{httpx.URL(bare).port}": token}, timeout=60).status_code == 200
    with served(tmp_path, "--host", "127.0.0.2") as second:
        link = f'<a href="{second}">the library</a>'
        page.route("http://127.0.0.1:9/mail", lambda route: route.fulfill(body=link, content_type="text/html"))
        for _ in range(2):  # a click on another site
            page.goto("http://127.0.0.1:9/mail")
            page.get_by_role("link").click()
            expect(page.get_by_role("heading", name="Search your library")).to_be_visible()
        for address in (broken, second.split("?")[0], bare):
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 200


NAMES = ["Library.example.org", "two.example:9101"]


@pytest.mark.parametrize("host", ["library.example.org", "LIBRARY.example.org:9101", "127.0.0.1:8080"])
@pytest.mark.parametrize("origin", ["https://library.example.org", "http://two.example:9101"])
def test_proxy_may_keep_or_replace_the_host(host: str, origin: str) -> None:
    headers = {"host": host, "origin": origin}
    assert client(names=NAMES).post("/", headers=headers).status_code == 200
    with client(names=NAMES).websocket_connect("/ws", headers=headers) as socket:
        assert socket.receive_text() == "hello"


def test_same_name_with_another_port_is_another_origin() -> None:
    for origin in ("https://library.example.org:8443", "https://evil.example", "http://two.example"):
        assert client(names=NAMES).post("/", headers={"origin": origin}).status_code == 403
