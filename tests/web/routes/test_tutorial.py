import io

from PIL import Image

from weakspot.web.services.studies import N_IMAGES


def test_tutorial__done__is_remembered(owner):
    assert owner.get("/api/tutorial").json()["did_tutorial"] is False
    assert owner.post("/api/tutorial/done").json()["did_tutorial"] is True
    assert owner.get("/api/tutorial").json()["did_tutorial"] is True


def test_tutorial__image__is_a_png(owner):
    answer = owner.get("/api/tutorial/images/0")
    assert answer.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(answer.content)).size == (96, 96)


def test_tutorial__no_such_image__is_refused(owner):
    for number, status in ((N_IMAGES, 404), (-1, 422), (10**30, 422), ("x", 422)):
        assert owner.get(f"/api/tutorial/images/{number}").status_code == status


def test_tutorial__phrase__is_answered_and_not_kept(owner):
    found = owner.post("/api/tutorial/phrase", json={"phrase": "red squares"}).json()
    assert found["fit"] == "good"
    assert len(found["similarities"]) == N_IMAGES
    assert owner.post("/api/tutorial/phrase", json={"phrase": "x" * 301}).status_code == 422
