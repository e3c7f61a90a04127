from weakspot.web.gate.headers import EVERYWHERE, completed


def _said(path, headers=(), **changes):
    return {name.decode(): value.decode() for name, value in completed(headers, path, **changes)}


def test_completed__any_answer__says_everything():
    assert EVERYWHERE.items() <= _said("/").items()


def test_completed__what_the_route_said__stays():
    assert _said("/api/pictures/1", [(b"cache-control", b"private, max-age=9")])["cache-control"] == "private, max-age=9"


def test_completed__caching__by_kind():
    assert _said("/api/session")["cache-control"] == "no-store"
    assert _said("/")["cache-control"] == "no-cache"
    assert "immutable" in _said("/assets/index-1.js")["cache-control"]
    assert _said("/assets/gone.js", is_fine=False)["cache-control"] == "no-store"
