import tomllib

from weakspot.app.config import DataSettings, PartSettings, Settings, parse_settings
from weakspot.app.template import commented_settings


def test_commented_settings__reads_back_the_same():
    settings = Settings(
        seed=3,
        data=DataSettings(source='a "quoted" folder', columns={"label": "species"}, class_names=("cat", "dog")),
        classifier=PartSettings(name="onnx", options={"path": "model.onnx", "mean": [0.5, 0.5, 0.5]}),
    )
    text = commented_settings(settings)
    assert parse_settings(tomllib.loads(text), where="here") == settings


def test_commented_settings__every_setting_is_explained():
    lines = commented_settings(Settings()).splitlines()
    entries = [number for number, line in enumerate(lines) if " = " in line and line.startswith("# ") and line[2].islower()]
    assert len(entries) > 30
    assert all(lines[number - 1].startswith("# ") for number in entries)
    assert tomllib.loads("\n".join(lines)) == {name: {} for name in Settings.model_fields if name != "seed"}
