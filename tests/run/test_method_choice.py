"""Methods are chosen by what is there, before anything long is read."""

from dataclasses import replace

import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.samples import Material
from weakspot.data.open_source import open_source
from weakspot.run.methods import check_methods, choose_methods, fitting_settings
from weakspot.run.settings import DiscoverSettings, Settings
from weakspot.run.wiring import build_discoverers
from weakspot.testing.examples import discovery_samples

COLUMNS = Material(n_columns=3)
CAPTIONS = Material(n_columns=1, has_captions=True)
IMAGES = Material(n_columns=2, spaces=frozenset({"clip"}), has_images=True)


def _settings(*methods, **parameters):
    return Settings(discover=DiscoverSettings(methods=methods, parameters=parameters))


def test_choose_methods__columns_are_enough_for_attributes():
    chosen, sentence = choose_methods(_settings("auto"), COLUMNS)
    assert chosen.discover.methods == ("attributes",)
    assert sentence.startswith("Uses 3 columns; no images or embeddings: clusters, ")
    assert "need them" in sentence


def test_choose_methods__captions_are_enough_for_words():
    assert "words" in choose_methods(_settings("auto"), CAPTIONS)[0].discover.methods


def test_choose_methods__embeddings_bring_the_rest():
    methods = choose_methods(_settings("auto"), IMAGES)[0].discover.methods
    assert {"clusters", "directions", "attributes"} <= set(methods)


def test_choose_methods__nothing_changes_where_all_can_work():
    settings = _settings("directions", "attributes")
    chosen, sentence = choose_methods(settings, IMAGES)
    assert chosen is settings
    assert sentence == "Uses 2 columns and embeddings."


def test_choose_methods__parameters_of_methods_that_cannot_work_are_left_out():
    settings = _settings("auto", directions={"n_folds": 3}, attributes={"max_order": 1})
    chosen = choose_methods(settings, COLUMNS)[0].discover
    assert chosen.parameters == {"attributes": {"max_order": 1}}


def test_choose_methods__what_auto_sets_stays_where_some_cannot_work():
    chosen = choose_methods(_settings("auto"), Material(spaces=frozenset({"clip"})))[0]
    assert "words" not in chosen.discover.methods
    assert chosen.discover.parameters["mixture"] == {"max_samples": 2_000}


def test_choose_methods__named_ones_that_cannot_work_get_one_sentence():
    with pytest.raises(ConfigError) as refused:
        choose_methods(_settings("directions", "clusters", "mixture"), COLUMNS)
    said = str(refused.value)
    assert said.count("need embeddings") == 1
    assert "directions, clusters and mixture need embeddings" in said
    assert "--method attributes" in said
    assert '["auto"]' in said


def test_choose_methods__named_columns_without_anything_to_compare_are_no_error():
    idle = Material(has_images=True, spaces=frozenset({"clip"}), has_idle_columns=True)
    named = _settings("attributes")
    assert choose_methods(named, idle)[0] == named
    with pytest.raises(ConfigError, match="attributes needs columns"):
        choose_methods(named, replace(idle, has_idle_columns=False))
    with pytest.raises(ConfigError, match="words needs captions"):
        choose_methods(_settings("attributes", "words"), idle)


def test_choose_methods__nothing_to_compare():
    chosen, sentence = choose_methods(_settings("auto"), Material())
    assert "no columns, captions, embeddings or images" in sentence
    assert "Only whole classes are compared" in sentence
    assert build_discoverers(chosen) == {}
    with pytest.raises(ConfigError, match="no columns, captions, embeddings or images"):
        choose_methods(_settings("attributes"), Material())


def test_fitting_settings__unchanged_where_nothing_fits():
    settings = _settings("words")
    assert fitting_settings(settings, discovery_samples()) is settings


def test_check_methods__reads_the_header_only(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("label,prediction,colour\na,b\n", encoding="utf-8")
    source = open_source(str(table))
    check_methods(_settings("auto"), source, has_own_embedder=False)
    check_methods(_settings("directions"), source, has_own_embedder=True)
    with pytest.raises(ConfigError, match="1 column, but no captions, embeddings or images"):
        check_methods(_settings("directions"), source, has_own_embedder=False)
