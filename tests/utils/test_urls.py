"""No name, no password and no key in the query of an address are ever shown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import ConfigError
from ragistry.utils.urls import Login, public_url, split_login
from tests.messages import refused


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host:8000/v1", "http://host:8000/v1"),
        ("http://user:pw@host:8000/v1", "http://host:8000/v1"),
        ("https://token@host", "https://host"),
        ("HTTP://us@er:p@w@host/x?y#z", "HTTP://host/x"),
        ("https://host/x.git?token=hush", "https://host/x.git"),
        ("host:9?key=hush\n", "host:9"),
        ("http://host#hush", "http://host"),
        ("user:pw@host:11434", "host:11434"),
        ("host:11434", "host:11434"),
        ("http://user:p/w@host", "http://…@host"),
        ("http://[::1]:9", "http://[::1]:9"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_its_login(url: str, shown: str) -> None:
    assert public_url(url) == shown


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["http://", "https://", ""]), st.text(st.sampled_from("pw:@/?#%. é"), max_size=8))
def test_whatever_a_password_is_made_of_it_is_not_shown(scheme: str, password: str) -> None:
    assert public_url(f"{scheme}user:hush{password}@host:9/x") in (f"{scheme}host:9/x", f"{scheme}…@host:9/x")


def test_a_login_is_what_the_server_wants() -> None:
    assert split_login("http://us%40er:p%2Fw@host") == ("http://host", Login("us@er", "p/w"))
    assert split_login("http://token@host") == ("http://host", Login("token", ""))
    assert split_login("http://host/x") == ("http://host/x", None)
    with refused(ConfigError):
        split_login("http://user:p/w@host")
    assert Login("Aladdin", "open sesame").header == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "as in RFC 7617"
