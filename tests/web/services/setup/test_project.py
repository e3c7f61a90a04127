"""Setting a project up: what is written, what is kept, what is refused."""

import io

import pytest
from PIL import Image

from weakspot.core.errors import ConfigError
from weakspot.run.settings import load_settings
from weakspot.web.services.setup import ChosenData, ChosenProject, begin_setup, needs_setup

COLUMNS = {"label": "truth", "prediction": "said"}


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
