import os

import pytest

from weakspot.app.config import DataSettings, DiscoverSettings, Settings
from weakspot.app.wiring import build_discoverers, build_engine, build_part, build_verifier, resolved_options
from weakspot.core.errors import ConfigError
from weakspot.media.remote import MEGABYTES_VARIABLE, RemoteReading, reading_as, remote_reading


def test_build_part__unknown_name_lists_known_ones():
    with pytest.raises(ConfigError, match="no discoverer called 'direction'.*directions"):
        build_part("discoverers", "direction", {}, where="here")


def test_build_part__unknown_option_lists_known_ones():
    with pytest.raises(ConfigError, match=r"n_fold: there is no such option \(known: .*n_folds"):
        build_part("discoverers", "directions", {"n_fold": 3}, where="[discover] parameters")


def test_build_part__lists_become_tuples():
    discoverer = build_part("discoverers", "directions", {"costs": [0.1, 1.0]}, where="here")
    assert discoverer.costs == (0.1, 1.0)


def test_build_part__missing_option():
    with pytest.raises(ConfigError, match="path: is needed"):
        build_part("classifiers", "onnx", {}, where="[classifier] options")


def test_build_engine__default_is_local():
    assert list(build_engine(Settings()).map(abs, [-1, 2, -3])) == [1, 2, 3]


def test_resolved_options__only_existing_files_are_resolved(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    assert resolved_options({"path": "model.onnx", "output": "logits"}, tmp_path) == {
        "path": str(tmp_path / "model.onnx"),
        "output": "logits",
    }
    assert resolved_options({"path": "elsewhere.onnx"}, tmp_path) == {"path": "elsewhere.onnx"}


def test_resolved_options__folders_of_any_option_and_nested_ones(tmp_path):
    (tmp_path / "vit").mkdir()
    given = {"model": "vit", "pictures": {"name": "onnx-pair", "options": {"folder": "vit"}}, "revision": ""}
    assert resolved_options(given, tmp_path) == {
        "model": str(tmp_path / "vit"),
        "pictures": {"name": "onnx-pair", "options": {"folder": str(tmp_path / "vit")}},
        "revision": "",
    }


def test_build_discoverers__all_leaves_out_baselines_and_methods_that_wait_for_words():
    found = build_discoverers(Settings(discover=DiscoverSettings(methods=("all",))))
    assert set(found) == {"attributes", "directions", "keywords", "mixture", "spotlight", "uncommon-attributes"}
    phrases = {"hypothesis": {"phrases": {"disc": ["green"]}}}
    assert "hypothesis" in build_discoverers(Settings(discover=DiscoverSettings(methods=("all",), parameters=phrases)))


def test_build_discoverers__a_baseline_can_be_asked_for_by_name():
    assert list(build_discoverers(Settings(discover=DiscoverSettings(methods=("loss", "directions"))))) == ["loss", "directions"]


def test_build_verifier__several_turns_share_the_error_rate():
    assert build_verifier(Settings(), n_turns=2).alpha == build_verifier(Settings()).alpha / 2


def test_build_engine__workers_know_how_pictures_are_kept():
    with reading_as(RemoteReading(cache_megabytes=9)):
        build_engine(Settings(data=DataSettings(cache_megabytes=5, cache_folder="/kept")))
        assert (remote_reading().cache_megabytes, remote_reading().cache_folder) == (5, "/kept")
        assert os.environ[MEGABYTES_VARIABLE] == "5"


def test_build_engine__what_settings_leave_open_stays():
    with reading_as(RemoteReading(cache_megabytes=9, seconds=3)):
        build_engine(Settings())
        assert remote_reading() == RemoteReading(cache_megabytes=9, seconds=3)
