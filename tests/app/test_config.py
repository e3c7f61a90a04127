import pytest

from weakspot.app.config import Settings, load_settings, parse_settings
from weakspot.core.errors import ConfigError


def test_parse_settings__empty_gives_defaults():
    settings = parse_settings({}, where="here")
    assert settings == Settings()
    assert settings.discover.methods == ("directions",)
    assert settings.failure.criterion().kind == "top-1"


def test_parse_settings__reports_every_problem_at_once():
    given = {"sed": 1, "data": {"kindd": 2, "task": "both"}, "failure": {"k": 0}, "report": {"n_pictures": "many"}}
    with pytest.raises(ConfigError) as caught:
        parse_settings(given, where="weakspot.toml")
    message = str(caught.value)
    for name in ("sed", "data.kindd", "data.task", "failure.k", "report.n_pictures"):
        assert f"{name}:" in message
    assert "known here: class_names, columns" in message
    assert "Where: weakspot.toml" in message


def test_parse_settings__target_without_class():
    with pytest.raises(ConfigError, match="needs the setting failure.target"):
        parse_settings({"failure": {"kind": "target"}}, where="here")


def test_load_settings__missing_file(tmp_path):
    with pytest.raises(ConfigError, match="Run `weakspot init`"):
        load_settings(tmp_path)


def test_load_settings__not_toml(tmp_path):
    (tmp_path / "weakspot.toml").write_text("seed = = 3")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_settings(tmp_path)


def test_load_settings__reads_values(tmp_path):
    (tmp_path / "weakspot.toml").write_text('seed = 7\n[failure]\nkind = "parent"\nparents = {robin = "bird"}\n')
    settings = load_settings(tmp_path)
    assert settings.seed == 7
    assert settings.failure.criterion().hierarchy.parent("robin") == "bird"
