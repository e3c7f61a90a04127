import os
from dataclasses import dataclass

import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.registry import part_class
from weakspot.data.engine.local import LocalEngine
from weakspot.data.remote import RemoteReading, reading_as, remote_reading
from weakspot.data.settings import DataSettings
from weakspot.discover.clusters import ClustersDiscoverer
from weakspot.run import wiring
from weakspot.run.settings import (
    DiscoverSettings,
    EngineSettings,
    Settings,
)
from weakspot.run.wiring import (
    build_discoverers,
    build_engine,
    build_part,
    resolved_options,
    with_provider,
)


def test_build_part__unknown_name_lists_known_ones():
    with pytest.raises(ConfigError, match="no discoverer called 'direction'.*directions"):
        build_part("discoverers", "direction", {}, where="here")


def test_build_part__unknown_option_lists_known_ones():
    with pytest.raises(ConfigError, match=r"n_fold: there is no such option \(known: .*n_folds"):
        build_part("discoverers", "directions", {"n_fold": 3}, where="[discover] parameters")


def test_build_part__missing_option():
    with pytest.raises(ConfigError, match="path: is needed"):
        build_part("classifiers", "onnx", {}, where="[classifier] options")


def test_with_provider__only_parts_that_take_one_and_have_none_of_their_own():
    assert with_provider("classifiers", "onnx", {}, "cuda") == {"providers": ("cuda",)}
    assert with_provider("classifiers", "onnx", {}, "auto") == {}
    own = {"providers": ("cpu",)}
    assert with_provider("classifiers", "onnx", own, "cuda") == own
    assert with_provider("classifiers", "sklearn", {"path": "m"}, "cuda") == {"path": "m"}
    for role, name in (("embedders", "embedded"), ("segmenters", "embedded")):
        assert with_provider(role, name, {}, "cuda") == {"providers": ("cuda",)}


def test_resolved_options__only_existing_files_are_resolved(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    assert resolved_options({"path": "model.onnx", "output": "logits"}, tmp_path) == {
        "path": str(tmp_path / "model.onnx"),
        "output": "logits",
    }
    assert resolved_options({"path": "elsewhere.onnx"}, tmp_path) == {"path": "elsewhere.onnx"}


def test_resolved_options__folders_of_any_option_and_nested_ones(tmp_path):
    (tmp_path / "vit").mkdir()
    given = {
        "model": "vit",
        "images": {"name": "onnx-pair", "options": {"folder": "vit"}},
        "revision": "",
    }
    assert resolved_options(given, tmp_path) == {
        "model": str(tmp_path / "vit"),
        "images": {"name": "onnx-pair", "options": {"folder": str(tmp_path / "vit")}},
        "revision": "",
    }


def test_build_discoverers__all_leaves_out_baselines_and_methods_that_wait_for_words():
    found = build_discoverers(Settings(discover=DiscoverSettings(methods=("all",))))
    assert {"directions", "attributes"} <= set(found)
    assert not {"loss", "confidence", "hypothesis"} & set(found)
    assert not any(method.is_baseline for method in found.values())
    phrases = {"hypothesis": {"phrases": {"disc": ["green"]}}}
    assert "hypothesis" in build_discoverers(
        Settings(discover=DiscoverSettings(methods=("all",), parameters=phrases))
    )


def test_build_discoverers__a_baseline_can_be_asked_for_by_name():
    assert list(
        build_discoverers(Settings(discover=DiscoverSettings(methods=("loss", "directions"))))
    ) == ["loss", "directions"]


def kept_here(_item):
    reading = remote_reading()
    return reading.cache_megabytes, reading.cache_folder


class KeptHere:
    def prepare(self, item):
        return kept_here(item)

    def run(self, ready):
        return list(ready)


@pytest.mark.parametrize("name", ["local", "processes"])
def test_build_engine__workers_read_as_configured_and_nothing_else_changes(name):
    before, environment = remote_reading(), dict(os.environ)
    settings = Settings(
        data=DataSettings(cache_megabytes=5, cache_folder="/kept"),
        engine=EngineSettings(name=name, options={"n_workers": 1}),
    )
    engine = build_engine(settings)
    assert list(engine.map(kept_here, range(2))) == [(5, "/kept")] * 2
    assert list(engine.map_batches(KeptHere, range(2), batch_size=2)) == [[(5, "/kept")] * 2]
    assert (remote_reading(), dict(os.environ)) == (before, environment)


def test_build_engine__what_settings_leave_open_stays():
    with reading_as(RemoteReading(cache_megabytes=9, seconds=3)):
        engine = build_engine(Settings())
    assert engine.reading == RemoteReading(cache_megabytes=9, seconds=3)
    assert isinstance(build_engine(Settings()), LocalEngine)


def test_build_discoverers__auto_is_cheap_ones_first_and_takes_further_ones():
    chosen = DiscoverSettings(
        methods=("auto", "uncommon-attributes"), parameters={"spotlight": {"n_spots": 1}}
    )
    built = build_discoverers(Settings(discover=chosen))
    assert list(built)[:2] == ["clusters", "attributes"]
    assert list(built)[-1] == "uncommon-attributes"
    assert built["spotlight"].n_spots == 1
    # Beside others a part of a large class is enough; whoever names a method, or sets it, is not second-guessed.
    assert built["spotlight"].max_samples == built["mixture"].max_samples == 2_000
    named = Settings(discover=DiscoverSettings(methods=("auto", "mixture")))
    assert build_discoverers(named)["mixture"].max_samples == 200_000
    several = DiscoverSettings(methods=("auto",), parameters={"mixture": {"max_samples": 9}})
    assert build_discoverers(Settings(discover=several))["mixture"].max_samples == 9


def test_discoverers__auto__methods_that_say_their_place__broken_plug_ins_left_out(monkeypatch):
    @dataclass(frozen=True, kw_only=True)
    class Quick(ClustersDiscoverer):
        auto_place = 0

    def loaded(_role, name):
        if name == "words":
            raise ConfigError("The discoverer 'words' cannot be imported.")
        return Quick if name == "hypothesis" else part_class("discoverers", name)

    monkeypatch.setattr(wiring, "part_class", loaded)
    built = wiring.build_discoverers(Settings(discover={"methods": ("auto",)}))
    assert list(built)[:3] == ["hypothesis", "clusters", "attributes"]
    assert "words" not in built
    assert built["mixture"].max_samples == 2_000
