import pytest

from weakspot.core.errors import ConfigError
from weakspot.models.endpoint.requests import address_problems, bearer_headers, shown_address


@pytest.mark.parametrize(
    ("url", "token_variable", "word"),
    [
        ("host/v1", None, "no http or https address"),
        ("ftp://host", None, "no http or https address"),
        ("http://[", None, "no http or https address"),
        ("https://me:secret@host/v1", None, "user name or password"),
        ("https://host/v1", "sk-123", "never the token itself"),
        ("http://host/v1", "TOKEN", "unencrypted"),
    ],
)
def test_address_problems__one_each(url, token_variable, word):
    (problem,) = address_problems(url, token_variable)
    assert word in problem


def test_address_problems__none():
    assert address_problems("https://host/v1", "TOKEN") == []
    assert address_problems("http://127.0.0.1:8000/v1", "TOKEN") == []
    assert address_problems("http://host/v1", None) == []


def test_shown_address__without_the_query():
    assert shown_address("https://host/v1?key=secret#part") == "https://host/v1"


def test_bearer_headers__from_the_environment(monkeypatch):
    monkeypatch.setenv("TINY_TOKEN", " s3cret\n")
    assert bearer_headers("TINY_TOKEN") == {"Authorization": "Bearer s3cret"}
    assert bearer_headers(None) == {}
    monkeypatch.setenv("TINY_TOKEN", " ")
    with pytest.raises(ConfigError, match="TINY_TOKEN"):
        bearer_headers("TINY_TOKEN")
