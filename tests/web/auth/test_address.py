import pytest

from weakspot.core.errors import ConfigError
from weakspot.web.auth.address import ServerAddress

HUB = "https://hub.example.org/user/me/proxy/8765/"


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost", "LOCALHOST:9000", "[::1]:8765", "localhost."]
)
def test_accepts_host__this_machine__accepted(host):
    assert ServerAddress(port=8765).accepts_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "192.168.1.7",
        "a b",
        "localhost/x",
        "x@localhost",
        "::1",
    ],
)
def test_accepts_host__stranger_on_loopback__refused(host):
    assert not ServerAddress(port=8765).accepts_host(host)


def test_accepts_host__open_server__addresses_but_no_strange_names():
    address = ServerAddress(host="0.0.0.0", port=8765)
    assert address.accepts_host("192.168.1.7:8765")
    assert not address.accepts_host("evil.example:8765")


def test_accepts_host__public_address__its_host():
    address = ServerAddress(public=HUB)
    assert address.accepts_host("hub.example.org")
    assert not address.accepts_host("example.org")


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:8765", "https://hub.example.org", "https://hub.example.org:443"]
)
def test_accepts_origin__own_pages__accepted(origin):
    assert ServerAddress(public=HUB).accepts_origin(origin, "127.0.0.1:8765")


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://127.0.0.1:3000",
        "http://evil.example",
        "http://hub.example.org",
        "file://",
        "http://a:b",
        "ftp://127.0.0.1:8765",
    ],
)
def test_accepts_origin__other_pages__refused(origin):
    assert not ServerAddress(public=HUB).accepts_origin(origin, "127.0.0.1:8765")


def test_inner_path__with_and_without_the_proxys_part__the_same():
    address = ServerAddress(public=HUB)
    assert address.inner_path("/user/me/proxy/8765/api/health") == "/api/health"
    assert address.inner_path("/api/health") == "/api/health"
    assert address.inner_path("/user/me/proxy/87651/x") == "/user/me/proxy/87651/x"


def test_cookie__public_address__path_and_safety_follow():
    address = ServerAddress(port=8765, public=HUB)
    assert (address.cookie_path, address.is_secure, address.cookie_name) == (
        "/user/me/proxy/8765",
        True,
        "weakspot-session-8765",
    )
    assert (ServerAddress().cookie_path, ServerAddress().is_secure) == ("/", False)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (ServerAddress(port=1), "http://127.0.0.1:1/#x"),
        (ServerAddress(host="::1", port=1), "http://[::1]:1/#x"),
        (ServerAddress(host="0.0.0.0", port=1), "http://127.0.0.1:1/#x"),
        (ServerAddress(port=1, public=HUB), f"{HUB}#x"),
    ],
)
def test_shown__any_host__an_address_that_can_be_opened(address, shown):
    assert address.shown("#x") == shown


@pytest.mark.parametrize(
    "public",
    [
        "hub.example.org",
        "ftp://a/",
        "https://",
        "https://a/?x=1",
        "https://a/#x",
        "https://a/../b",
        "https://a:b/",
    ],
)
def test_public_address__none__said(public):
    with pytest.raises(ConfigError, match="public address"):
        ServerAddress(public=public)
