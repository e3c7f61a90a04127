import pytest

from weakspot.core.errors import ConfigError
from weakspot.run.settings import (
    EngineSettings,
    Settings,
    load_settings,
    parse_settings,
    with_engine,
)


def test_parse_settings__empty_gives_defaults():
    settings = parse_settings({}, where="here")
    assert settings == Settings()
    assert settings.discover.methods == ("directions",)
    assert settings.failure.criterion().kind == "top-1"


def test_parse_settings__reports_every_problem_at_once():
    given = {
        "sed": 1,
        "data": {"kindd": 2, "task": "both"},
        "failure": {"k": 0},
        "report": {"n_images": "many"},
    }
    with pytest.raises(ConfigError) as caught:
        parse_settings(given, where="weakspot.toml")
    message = str(caught.value)
    for name in ("sed", "data.kindd", "data.task", "failure.k", "report.n_images"):
        assert f"{name}:" in message
    assert "known here: cache_folder, cache_megabytes, class_names, columns" in message
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
    (tmp_path / "weakspot.toml").write_text(
        'seed = 7\n[failure]\nkind = "parent"\nparents = {robin = "bird"}\n'
    )
    settings = load_settings(tmp_path)
    assert settings.seed == 7
    assert settings.failure.criterion().hierarchy.parent("robin") == "bird"


def test_engine__a_name_alone_or_a_section():
    assert Settings.model_validate({"engine": "ray"}).engine == EngineSettings(name="ray")
    assert Settings.model_validate(
        {"engine": {"name": "processes", "options": {"n_workers": 2}}}
    ).engine.options == {"n_workers": 2}
    assert Settings.model_validate({"engine": {}}).engine.name == "local"
    assert Settings().engine == EngineSettings(name="local")


def test_engine__what_cannot_be_used_is_named():
    with pytest.raises(
        ConfigError,
        match=r"engine\.nmae: there is no such setting \(known here: name, options, provider\)",
    ):
        parse_settings({"engine": {"nmae": "ray"}}, where="weakspot.toml")
    with pytest.raises(ConfigError, match="engine"):
        parse_settings({"engine": 3}, where="weakspot.toml")


def test_with_engine__options_stay_with_their_engine():
    settings = Settings(engine=EngineSettings(name="processes", options={"n_workers": 2}))
    assert with_engine(settings, "") == settings
    assert with_engine(settings, "processes") == settings
    assert with_engine(settings, "local").engine == EngineSettings(name="local")
