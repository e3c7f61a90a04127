"""What may be named on the pages of the set-up."""

import pytest

from weakspot.core.errors import ConfigError


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
