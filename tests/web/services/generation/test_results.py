import shutil

import pytest
from tests.build import planted_project

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.run import no_stage_progress
from weakspot.project.project import Project
from weakspot.web.services import generate
from weakspot.web.services.generate import counterfactual, search
from weakspot.web.services.work import do_work
from weakspot.web.services.workspace import Workspace


@pytest.fixture(scope="module")
def generated_folder(tmp_path_factory):
    """A planted project with one series of captions and one search."""
    project = planted_project(
        tmp_path_factory.mktemp("generated"), 300, more='[generator]\nname = "planted"\n'
    )
    counterfactual(
        project, no_stage_progress, class_name="disc", captions=("green", "in the dark"), n_each=16
    )
    search(project, no_stage_progress, class_name="disc", budget=200, captions=("it is green",))
    return project.folder


@pytest.fixture
def workspace(generated_folder, tmp_path):
    return Workspace(Project.open(shutil.copytree(generated_folder, tmp_path / "shapes")))


def test_counterfactual__kept_with_control_and_images(workspace):
    (kept,) = generate.kept_counterfactuals(workspace)
    assert kept.class_name == "disc"
    assert [rate.caption for rate in kept.rates] == ["green", "in the dark"]
    green = kept.rates[0]
    assert green.share.value > kept.baseline.share.value
    assert green.change_interval.low <= green.change <= green.change_interval.high
    assert kept.baseline.words == ""
    assert green.images
    failed = sum(one.fails for one in green.images)
    assert failed == green.share.count
    content = generate.generated_image(workspace, green.images[0].digest, side=64)
    assert content is not None
    assert content.startswith(b"\xff\xd8")


def test_search__kept_with_every_caption(workspace):
    (kept,) = generate.kept_searches(workspace)
    assert kept.class_name == "disc"
    assert kept.n_images <= 200
    assert kept.trials[0].caption == "it is green."
    assert kept.trials[0].phrase == "green"
    assert kept.headline.startswith("Images of “")
    digests = kept.baseline.digests
    assert all(generate.generated_image(workspace, digest, side=64) for digest in digests)


def test_counterfactual__asked_again__takes_the_place_of_the_first(workspace):
    (before,) = generate.kept_counterfactuals(workspace)
    told = []
    result = counterfactual(
        workspace.project,
        lambda stage, done, total: told.append(stage),
        class_name="disc",
        captions=("green", "in the dark"),
        n_each=16,
    )
    (after,) = generate.kept_counterfactuals(workspace)
    assert result["result_id"] == before.result_id == after.result_id
    assert after.rates == before.rates
    assert "draw" in told


def test_counterfactual__unknown_class__says_so(workspace):
    with pytest.raises(DataError, match="no class"):
        counterfactual(
            workspace.project, no_stage_progress, class_name="hexagon", captions=("green",)
        )


def test_counterfactual__bad_arguments__refused_before_anything_is_drawn(workspace):
    disc = {"class_name": "disc"}
    for given in (
        {},
        {"path": "/"},
        disc | {"captions": []},
        disc | {"captions": ["x"], "n_each": 0},
    ):
        with pytest.raises(ConfigError):
            do_work("counterfactual", workspace.project, given, no_stage_progress)


def test_kept__damaged_file__is_left_out(workspace):
    folder = workspace.project.store.data / generate.FOLDER / "counterfactuals"
    (folder / "damaged.json").write_text('{"result_id": 1')
    assert len(generate.kept_counterfactuals(workspace)) == 1


def test_keep__many_results__the_oldest_are_forgotten(workspace, monkeypatch):
    monkeypatch.setattr(generate, "MAX_KEPT", 1)
    counterfactual(
        workspace.project, no_stage_progress, class_name="disc", captions=("green",), n_each=16
    )
    (kept,) = generate.kept_counterfactuals(workspace)
    assert [rate.caption for rate in kept.rates] == ["green"]


def test_drawn_image__no_such_content__nothing(workspace):
    for digest in ("", "../../weakspot.toml", "0" * 64, "A" * 64, "0" * 63 + "/"):
        assert generate.generated_image(workspace, digest, side=64) is None


def test_drawn_image__file_with_other_content__nothing(workspace):
    path = workspace.project.store.generated / "images" / "00" / ("0" * 64 + ".png")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"secret")
    assert generate.generated_image(workspace, "0" * 64, side=64) is None
