import pytest

from weakspot.app.browsing.drawing_work import counterfactual
from weakspot.core.run import no_stage_progress


@pytest.fixture
def drawn(parts):
    """The server's project after a person measured a caption."""
    project = parts.workspace.project
    settings = project.settings.model_copy(update={"generator": project.settings.generator.model_copy(update={"name": "planted"})})
    project.settings = settings
    counterfactual(project, {"class_name": "disc", "captions": ["green"], "n_each": 4}, no_stage_progress)
    return parts


def test_counterfactuals__kept_result_with_its_pictures(drawn, owner):
    (result,) = owner.get("/api/drawings/counterfactuals").json()["results"]
    assert result["class_name"] == "disc"
    digest = result["baseline"]["pictures"][0]["digest"]
    answer = owner.get(f"/api/drawings/pictures/{digest}?side=64")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/jpeg"
    assert "immutable" in answer.headers["cache-control"]


def test_setup_cost_and_prompt__say_what_can_be_drawn(drawn, owner):
    setup = owner.get("/api/drawings/setup").json()
    assert set(setup["class_names"]) == {"disc", "square", "triangle", "star"}
    assert setup["why_not"] == ""
    assert owner.get("/api/drawings/cost?n_pictures=10").json()["is_charged"] is False
    asked = owner.get("/api/drawings/prompt", params={"class_name": "disc", "caption": "on grass"})
    assert asked.json() == {"prompt": "a photo of a disc on grass", "refusal": ""}
    assert owner.get("/api/drawings/searches").json() == {"results": []}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/drawings/pictures/" + "0" * 64, 404),
        ("/api/drawings/pictures/..%2F..%2Fweakspot.toml", (404, 422)),
        ("/api/drawings/pictures/abc", 422),
        ("/api/drawings/cost?n_pictures=0", 422),
        ("/api/drawings/cost?n_pictures=99999999999999999999", 422),
        ("/api/drawings/prompt?class_name=", 422),
        ("/api/drawings/prompt?class_name=hexagon", 422),
        ("/api/drawings/prompt?class_name=disc&caption=%00%ff", 200),
    ],
)
def test_drawings__odd_requests__refused_in_words(owner, path, status):
    answer = owner.get(path)
    assert answer.status_code in (status if isinstance(status, tuple) else (status,)), answer.text
    assert answer.status_code == 200 or answer.json()["what"]


@pytest.mark.parametrize("path", ["setup", "cost?n_pictures=1", "counterfactuals", "searches", "pictures/" + "0" * 64])
def test_drawings__nobody_came_in__refused(parts, path):
    from starlette.testclient import TestClient

    from weakspot.web.application import create_app

    stranger = TestClient(create_app(parts), base_url="http://127.0.0.1:8765")
    assert stranger.get(f"/api/drawings/{path}").status_code == 401
