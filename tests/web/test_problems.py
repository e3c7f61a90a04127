import json
from typing import Annotated

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, Field
from starlette.testclient import TestClient

from weakspot.core.errors import (
    DataError,
    MissingExtraError,
    NotEnoughDataError,
    StoreError,
    UnavailableError,
    WeakspotError,
)
from weakspot.web.problems import MAX_GIVEN_LENGTH, RefusedError, add_handlers, refusal
from weakspot.web.services.view import UNLIKE_AN_ID


class Body(BaseModel):
    name: Annotated[str, Field(pattern=r"^[a-z]+$")]


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()
    add_handlers(app)

    @app.post("/")
    def take(body: Body) -> str:
        return body.name

    return TestClient(app)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (DataError("x"), 422),
        (WeakspotError("x"), 422),
        (StoreError("x"), 409),
        (NotEnoughDataError("x"), 409),
        (UnavailableError("x"), 424),
        (MissingExtraError("a", extra="b", purpose="Things"), 424),
        (RefusedError(404, "x"), 404),
    ],
)
def test_refusal__every_kind__its_status(error, status):
    assert refusal(error).status_code == status


def test_refusal__later__says_when():
    assert refusal(RefusedError(429, "x", retry_after=7)).headers["retry-after"] == "7"


@pytest.mark.parametrize(
    "given", ["x" * 9999, "\ud800", 10**4000], ids=["long", "half a character", "large"]
)
def test_refusal__anything_given__can_be_sent(given):
    said = json.loads(refusal(DataError("x", given=given)).body)
    assert len(said["given"]) <= MAX_GIVEN_LENGTH


@pytest.mark.parametrize(
    "content",
    [
        '{"name": ["\\ud800"]}',
        '{"name": 1e999}',
        '{"name": NaN}',
        "{",
        "[" * 9999,
        '{"name": ' + "9" * 5000 + "}",
    ],
    ids=range(6),
)
def test_invalid__anything_sent__said(client, content):
    answer = client.post("/", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"what", "where", "given", "fix"}


def test_unknown_path__said_in_the_same_form(client):
    assert client.get("/nothing").json()["what"] == "There is no such thing."


def test_invalid__not_as_an_id_is_written__told_without_a_regular_expression(client):
    said = client.post("/", json={"name": "NO"}).json()
    assert said["fix"] == UNLIKE_AN_ID
    assert "[a-z]" not in str(said)
