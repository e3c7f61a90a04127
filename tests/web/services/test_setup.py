"""Setting a project up: what may be named, the first look at data, what is written, kept and refused."""

import io

import pytest
from PIL import Image

from weakspot.core.errors import ConfigError
from weakspot.run.settings import load_settings
from weakspot.web.services.setup import (
    AllowedPlaces,
    ChosenData,
    ChosenProject,
    begin_setup,
    look_at_data,
    needs_setup,
)

COLUMNS = {"label": "truth", "prediction": "said"}


@pytest.fixture
def given(tmp_path):
    """A folder `given` with 12 images of two classes, and tables beside them."""
    folder = tmp_path / "given"
    lines = ["file,truth,said,where"]
    for number in range(12):
        name = ("cat", "dog")[number % 2]
        place = folder / "photos" / name / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (12, 8), (20 * number, 40, 90)).save(place)
        lines.append(f"photos/{name}/{number}.png,{name},cat,{('in', 'out')[number // 6]}")
    (folder / "answers.csv").write_text("\n".join(lines) + "\n")
    (folder / "model.onnx").write_bytes(b"no model")
    (folder / ".hidden").mkdir()
    (folder / "notes.txt").write_text("nothing")
    return folder


@pytest.fixture
def places(given):
    return AllowedPlaces(start=given, roots=(given,))


def test_allow__below__whole_path(places, given):
    assert places.allow("photos") == (given / "photos").resolve()
    assert places.allow(str(given / "answers.csv")) == (given / "answers.csv").resolve()


@pytest.mark.parametrize(
    "path", ["..", "/etc/passwd", "photos/../../x", "/", "~root", "\0", "a" * 5000]
)
def test_allow__elsewhere_not_there_or_no_path__refused(places, path):
    with pytest.raises(ConfigError):
        places.allow(path)


def test_allow__link_that_leads_out__refused(places, given, tmp_path):
    (tmp_path / "secret").mkdir()
    (given / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigError, match="may not be read"):
        places.allow("link")


def test_allow__elsewhere__does_not_say_whether_it_is_there(places):
    said = []
    for path in ("/etc/passwd", "/etc/nothing-like-this"):
        with pytest.raises(ConfigError) as refused:
            places.allow(path)
        said.append(refused.value.what)
    assert said[0] == said[1]


def test_list_folder__folders_first_then_data_and_models(places, given):
    found = places.list_folder("")
    shown = [(place.name, place.kind) for place in found.places]
    assert shown == [("photos", "folder"), ("answers.csv", "data"), ("model.onnx", "model")]
    assert (found.above, found.n_images, found.is_whole) == (None, 0, True)
    inner = places.list_folder("photos/cat")
    assert (inner.n_images, inner.above) == (6, str((given / "photos").resolve()))


def test_list_folder__a_file__said(places):
    with pytest.raises(ConfigError, match="cannot be read"):
        places.list_folder("notes.txt")


def test_look_at_data__folder__classes_and_images_of_each(places):
    found, shown = look_at_data(places, "photos", {})
    assert (found.kind, found.n_samples, found.problem) == ("image-folder", 12, "")
    assert {one.name: one.n_samples for one in found.classes} == {"cat": 6, "dog": 6}
    assert len(found.images) == len(shown) == 12
    assert {one.label for one in found.images} == {"cat", "dog"}
    assert not found.has_predictions


def test_look_at_data__table_with_other_names__columns_are_offered(places):
    found, shown = look_at_data(places, "answers.csv", {})
    assert "No sample has a label" in found.problem
    assert found.columns == ("file", "truth", "said", "where")
    assert found.roles == {"path": "file"}
    assert shown == []


def test_look_at_data__columns_chosen__read_by_them(places):
    found, _ = look_at_data(places, "answers.csv", {"label": "truth", "prediction": "said"})
    assert (found.kind, found.n_samples, found.problem) == ("manifest", 12, "")
    assert found.has_predictions
    assert found.has_images


def test_look_at_data__nothing_that_can_be_read__said_not_raised(places):
    found, _ = look_at_data(places, "notes.txt", {})
    assert ".txt" in found.problem
    unknown, _ = look_at_data(places, "answers.csv", {"label": "nothing"})
    assert "nothing" in unknown.problem


def test_look_at_data__elsewhere__refused(places):
    with pytest.raises(ConfigError):
        look_at_data(places, "/etc", {})


@pytest.fixture
def setup(places, given, tmp_path):
    return begin_setup(
        tmp_path / "project", places=places, source=str(given / "photos"), may_use_network=False
    )


def test_begin_setup__nothing_there__data_of_the_command_line_is_proposed(setup, given):
    state = setup.state()
    assert (state.source, state.is_written, state.classifier) == (str(given / "photos"), False, "")
    assert not setup.has_run()


def test_look__then_image__a_small_jpeg_of_it(setup):
    assert setup.image(0) is None
    assert setup.look(ChosenData(source="photos")).problem == ""
    data = setup.image(0)
    assert data is not None
    assert Image.open(io.BytesIO(data)).size == (12, 8)
    assert setup.image(23) is None


def test_write__table__settings_and_project_are_there(setup, given):
    state = setup.write(ChosenProject(source="answers.csv", columns=COLUMNS))
    assert (state.is_written, state.source) == (True, str((given / "answers.csv").resolve()))
    settings = load_settings(setup.folder)
    assert settings.data.columns == COLUMNS
    assert settings.data.source == "../given/answers.csv"
    assert setup.workspace.project.settings == settings
    assert setup.workspace.project.preflight()


def test_write__the_same_again__a_hand_written_file_stays(setup):
    setup.write(ChosenProject(source="answers.csv", columns=COLUMNS))
    path = setup.folder / "weakspot.toml"
    path.write_text(path.read_text() + "\n# mine\n")
    setup.write(ChosenProject(source="answers.csv", columns=COLUMNS))
    assert path.read_text().endswith("# mine\n")
    setup.write(ChosenProject(source="photos", classifier="model.onnx"))
    assert load_settings(setup.folder).classifier.options["path"] == "../given/model.onnx"


@pytest.mark.parametrize(
    "classifier",
    ["os:system", "http://127.0.0.1:1/", "transformers:x/y", "/etc/passwd", "answers.csv"],
)
def test_write__classifier_that_may_not_be_named__refused_and_nothing_written(setup, classifier):
    with pytest.raises(ConfigError):
        setup.write(ChosenProject(source="photos", classifier=classifier))
    assert not (setup.folder / "weakspot.toml").exists()


def test_write__unknown_role__refused(setup):
    with pytest.raises(ConfigError, match="cannot mean"):
        setup.write(ChosenProject(source="answers.csv", columns={"colour": "truth"}))


def test_write__samples_were_read__refused(setup):
    setup.write(ChosenProject(source="answers.csv", columns=COLUMNS))
    setup.workspace.project.ingest()
    with pytest.raises(ConfigError, match="read already"):
        setup.write(ChosenProject(source="photos"))
    assert not needs_setup(setup.folder, None)


def test_needs_setup__other_data_than_the_project_has__refused(setup, given):
    setup.write(ChosenProject(source="answers.csv", columns=COLUMNS))
    assert needs_setup(setup.folder, given / "answers.csv")
    with pytest.raises(ConfigError, match="other data"):
        needs_setup(setup.folder, given / "photos")
