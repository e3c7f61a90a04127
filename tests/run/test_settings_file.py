import pytest

from weakspot.core.errors import ConfigError
from weakspot.run.settings_file import load_settings


def test_load_settings__unknown_names_are_refused_with_those_that_are_known(tmp_path):
    (tmp_path / "weakspot.toml").write_text("[report]\nn_images = 3\nn_pictures = 4\n")
    with pytest.raises(ConfigError, match=r"n_pictures: there is no such setting .*n_images"):
        load_settings(tmp_path)
