import io

import pytest
from PIL import Image

from weakspot.app.browsing.tutorial import N_PICTURES


def test_tutorial__done__is_remembered(owner):
    assert owner.get("/api/tutorial").json()["did_tutorial"] is False
    assert owner.post("/api/tutorial/done").json()["did_tutorial"] is True
    assert owner.get("/api/tutorial").json()["did_tutorial"] is True


def test_tutorial__picture__is_a_png(owner):
    answer = owner.get("/api/tutorial/pictures/0")
    assert answer.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(answer.content)).size == (96, 96)


@pytest.mark.parametrize(("number", "status"), [(N_PICTURES, 404), (-1, 422), (10**30, 422), ("x", 422)])
def test_tutorial__no_such_picture__is_refused(owner, number, status):
    assert owner.get(f"/api/tutorial/pictures/{number}").status_code == status


def test_tutorial__phrase__is_answered_and_not_kept(owner):
    found = owner.post("/api/tutorial/phrase", json={"phrase": "red squares"}).json()
    assert found["fit"] == "good"
    assert len(found["similarities"]) == N_PICTURES
    assert owner.post("/api/tutorial/phrase", json={"phrase": "x" * 301}).status_code == 422
