import pytest

from weakspot.core.run import no_stage_progress
from weakspot.web.services.generate import counterfactual


@pytest.fixture
def drawn(parts):
    """The server's project after a person measured a caption."""
    project = parts.workspace.project
    settings = project.settings.model_copy(
        update={"generator": project.settings.generator.model_copy(update={"name": "planted"})}
    )
    project.settings = settings
    counterfactual(project, no_stage_progress, class_name="disc", captions=("green",), n_each=4)
    return parts


def test_counterfactuals__kept_result_with_its_images(drawn, owner):
    (result,) = owner.get("/api/generation/counterfactuals").json()["results"]
    assert result["class_name"] == "disc"
    digest = result["baseline"]["images"][0]["digest"]
    answer = owner.get(f"/api/generation/images/{digest}?side=64")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/jpeg"
    assert "immutable" in answer.headers["cache-control"]


def test_setup_cost_and_prompt__say_what_can_be_drawn(drawn, owner):
    setup = owner.get("/api/generation/setup").json()
    assert set(setup["class_names"]) == {"disc", "square", "triangle", "star"}
    assert setup["why_not"] == ""
    assert owner.get("/api/generation/cost?n_images=10").json()["is_charged"] is False
    asked = owner.get(
        "/api/generation/prompt", params={"class_name": "disc", "caption": "on grass"}
    )
    assert asked.json() == {"prompt": "a photo of a disc on grass", "refusal": ""}
    assert owner.get("/api/generation/searches").json() == {"results": []}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/generation/images/" + "0" * 64, 404),
        ("/api/generation/images/..%2F..%2Fweakspot.toml", (404, 422)),
        ("/api/generation/images/abc", 422),
        ("/api/generation/cost?n_images=0", 422),
        ("/api/generation/cost?n_images=99999999999999999999", 422),
        ("/api/generation/prompt?class_name=", 422),
        ("/api/generation/prompt?class_name=hexagon", 422),
        ("/api/generation/prompt?class_name=disc&caption=%00%ff", 200),
    ],
)
def test_drawings__odd_requests__refused_in_words(owner, path, status):
    answer = owner.get(path)
    assert answer.status_code in (status if isinstance(status, tuple) else (status,)), answer.text
    assert answer.status_code == 200 or answer.json()["what"]


@pytest.mark.parametrize(
    "path", ["setup", "cost?n_images=1", "counterfactuals", "searches", "images/" + "0" * 64]
)
def test_drawings__nobody_came_in__refused(parts, path):
    from starlette.testclient import TestClient

    from weakspot.web.application import create_app

    stranger = TestClient(create_app(parts), base_url="http://127.0.0.1:8765")
    assert stranger.get(f"/api/generation/{path}").status_code == 401
