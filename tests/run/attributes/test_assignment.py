import json
from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.dataset import METADATA_PREFIX, Split
from weakspot.core.errors import ConfigError
from weakspot.core.samples import AttributeBook, EmbeddingSpace, SampleSet, marked_attributes
from weakspot.data.engine.local import LocalEngine
from weakspot.data.table_source import ManifestSource
from weakspot.run.attributes import with_attributes
from weakspot.run.embedding import embed
from weakspot.run.ingestion import ingest
from weakspot.run.settings import AttributeSettings, Settings
from weakspot.store.project import ProjectStore
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import phrase_embeddings, plant, spurious

ENGINE = LocalEngine(n_workers=2, queue_depth=4)
READER = Assistants(embed_texts=phrase_embeddings)


@pytest.fixture(scope="module")
def scenes():
    return plant(spurious(0.9), 700, seed=5)


@pytest.fixture
def store(tmp_path):
    return ProjectStore.create(tmp_path / "project")


def _bare(world):
    """Return all samples of a world without the columns that tell the truth."""
    table = world.dataset.table
    kept = [name for name in table.column_names if not name.startswith(METADATA_PREFIX)]
    samples = world.samples(*Split)
    return replace(samples, dataset=replace(world.dataset, table=table.select(kept)))


def _attributed(samples, store, *, assistants=READER, **settings):
    return with_attributes(
        samples,
        assistants=assistants,
        settings=Settings(attributes=AttributeSettings(**settings)),
        store=store,
        engine=ENGINE,
    )


def _words(samples, name):
    return np.array(samples.dataset.metadata(name).to_pylist(), dtype=object)


def _refuse(*_given):
    raise AssertionError("nobody must be asked")


def test_with_attributes__built_in_words_tell_the_truth(scenes, store):
    samples, notes = _attributed(_bare(scenes), store)
    for name in ("colour", "background", "lighting"):
        told, truth = _words(samples, name), _words(scenes.samples(*Split), name)
        is_sure = told != None  # noqa: E711 - element by element
        assert is_sure.mean() > 0.9
        assert (told[is_sure] == truth[is_sure]).mean() >= 0.95
    assert marked_attributes(samples.dataset.table)[:2] == ("background", "colour")
    assert "Nothing is measured in images: there are none." in notes
    assert any("'weather' is left out" in note for note in notes)


def test_with_attributes__the_book_is_for_people(scenes, store):
    samples, notes = _attributed(_bare(scenes), store)
    content = json.loads((store.data / "attributes.json").read_text())
    colour = next(entry for entry in content["attributes"] if entry["name"] == "colour")
    assert colour["source"] == "built-in"
    assert colour["values"][0]["phrases"] == [
        "a photo of a red thing",
        "a picture of a red-coloured object",
    ]
    shares = {value["value"]: value["share"] for value in colour["values"]}
    assert shares["red"] == pytest.approx((_words(samples, "colour") == "red").mean(), abs=1e-6)
    assert AttributeBook.model_validate(content).notes == notes


def test_with_attributes__another_process_gets_the_same_without_asking(scenes, store):
    first, notes = _attributed(_bare(scenes), store)
    silent = Assistants(embed_texts=_refuse)
    again, same_notes = _attributed(_bare(scenes), ProjectStore.open(store.root), assistants=silent)
    assert again.dataset.table.equals(first.dataset.table)
    assert marked_attributes(again.dataset.table) == marked_attributes(first.dataset.table)
    assert same_notes == notes


def test_with_attributes__a_damaged_file_is_made_anew(scenes, store):
    first, _ = _attributed(_bare(scenes), store)
    (path,) = (store.data / "attributes").glob("*/columns.arrow")
    path.write_bytes(path.read_bytes()[:100])
    again, _ = _attributed(_bare(scenes), store)
    assert again.dataset.table.equals(first.dataset.table)


def test_with_attributes__labels_and_predictions_are_not_read(scenes, store, tmp_path):
    samples = _bare(scenes)
    table = samples.dataset.table
    shuffled = np.random.default_rng(0).permutation(len(samples.dataset))
    changed = table.set_column(
        table.column_names.index("label"), "label", table.column("label").take(shuffled)
    )
    other = replace(
        samples,
        dataset=replace(samples.dataset, table=changed, predictions=None, probabilities=None),
    )
    first, _ = _attributed(samples, store)
    second, _ = _attributed(other, ProjectStore.create(tmp_path / "other"))
    assert first.dataset.metadata_names == second.dataset.metadata_names
    assert all(
        second.dataset.metadata(name).equals(first.dataset.metadata(name))
        for name in first.dataset.metadata_names
    )


def test_with_attributes__new_embeddings_are_noticed(scenes, store):
    samples = _bare(scenes)
    embeddings = samples.spaces["clip"].embeddings.copy()
    embeddings[:50] = np.nan
    spaces = {
        "clip": EmbeddingSpace(
            encoder_id=samples.spaces["clip"].encoder_id, embeddings=embeddings, has_text=True
        )
    }
    before, _ = _attributed(replace(samples, spaces=spaces), store)
    assert set(_words(before, "colour")[:50]) == {None}
    after, _ = _attributed(samples, store)
    assert (
        _words(after, "colour")[:50] == _words(scenes.samples(*Split), "colour")[:50]
    ).mean() > 0.9


def test_with_attributes__another_text_side_on_the_same_images_is_told_anew(scenes, store):
    samples = _bare(scenes)
    _attributed(samples, store)
    asked = []

    def read(texts):
        asked.extend(texts)
        return phrase_embeddings(texts)

    _attributed(samples, store, assistants=Assistants(embed_texts=read))
    assert not asked
    renamed = replace(samples.spaces["clip"], text_id="another text side")
    other = replace(samples, spaces={**samples.spaces, "clip": renamed})
    _attributed(other, store, assistants=Assistants(embed_texts=read))
    assert asked


def test_with_attributes__the_users_columns_are_kept_and_marked(scenes, store):
    samples = scenes.samples(*Split)
    found, notes = _attributed(samples, store, columns=("colour", "size"))
    assert found.dataset.metadata("colour").equals(samples.dataset.metadata("colour"))
    marked = marked_attributes(found.dataset.table)
    assert marked[:2] == ("colour", "size")
    assert {"colour (assigned)", "background (assigned)"} <= set(marked)
    assert "background" not in marked
    every, all_notes = _attributed(samples, store)
    assert {"kind", "position"} <= set(marked_attributes(every.dataset.table))
    assert (
        "The attribute 'label_is_wrong' is left out: it has the same value everywhere." in all_notes
    )
    assert not any("label_is_wrong" in note for note in notes)


def test_with_attributes__unknown_column(scenes, store):
    with pytest.raises(ConfigError, match="no such metadata columns"):
        _attributed(scenes.samples(*Split), store, columns=("colour", "shape"))


@pytest.mark.parametrize(
    "assistants", [NO_ASSISTANTS, Assistants(propose=_refuse, answers=_refuse)]
)
def test_with_attributes__no_text_side(scenes, store, assistants):
    found, notes = _attributed(_bare(scenes), store, assistants=assistants)
    assert marked_attributes(found.dataset.table) == ()
    assert notes[0] == "No attribute is told from words: there is no encoder with a text side."


def test_with_attributes__images_are_measured(tmp_path, store):
    world = plant(spurious(0.9), 80, seed=6)
    written = world.write_images(tmp_path / "images")
    ingest(store, ManifestSource(location=str(written.manifest)), engine=ENGINE)
    dataset = store.dataset()
    made = embed(store, dataset, PlantedEmbedder(), engine=ENGINE)
    samples = SampleSet(
        dataset=dataset,
        rows=np.arange(80),
        spaces={"clip": made.space},
        reference_rows=dataset.rows_of(Split.TRAIN),
    )
    found, notes = _attributed(samples, store)
    brightness, lighting = _words(found, "brightness"), _words(found, "lighting")
    assert (lighting[brightness == "dark"] == "dark").mean() > 0.9
    assert {"contrast", "sharpness", "entropy", "colourfulness", "dominant colour"} <= set(
        marked_attributes(found.dataset.table)
    )
    assert "The attribute 'image size' is left out: all images are alike in it." in notes
    again, _ = _attributed(
        samples, ProjectStore.open(store.root), assistants=Assistants(embed_texts=_refuse)
    )
    assert again.dataset.table.equals(found.dataset.table)
