import shutil

import numpy as np
import pytest

import weakspot
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError, StoreError
from weakspot.project import project as workings
from weakspot.project.project import Project
from weakspot.testing.fakes import PlantedEmbedder, planted_classifier
from weakspot.testing.planted import nothing, plant


def _project(folder, world, manifest, **settings):
    return Project.create(
        folder,
        data=str(manifest),
        classifier=planted_classifier(world),
        embedder=PlantedEmbedder(),
        settings=weakspot.Settings(**settings),
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory, world, manifest):
    return _project(tmp_path_factory.mktemp("project"), world, manifest)


@pytest.fixture(scope="module")
def record(project):
    return project.run()


def test_run__record_says_what_was_used(record, world):
    assert record.inputs["encoder"] == PlantedEmbedder().encoder_id
    assert record.inputs["classifier"] == planted_classifier(world).classifier_id
    assert record.versions["numpy"] == np.__version__
    assert record.settings["seed"] == 0
    assert [stage.stage for stage in record.stages] == [
        "preflight", "ingest", "classify", "embed", "methods", "discover", "describe", "verify", "repair",
        "advise",
    ]  # fmt: skip
    assert record.finished is not None


def test_run__evidence_is_from_samples_that_discovery_did_not_see(record, project):
    halves = (
        {found.found_on.digest for found in record.slices},
        {item.measured_on.digest for item in record.evidence},
    )
    assert halves[0].isdisjoint(halves[1])
    assert {found.found_on.name for found in record.slices} == {"validation, discovery half"}
    assert {item.measured_on.name for item in record.evidence} == {"validation, confirmation half"}


def test_verify__slices_that_were_not_worth_words_before__get_them_when_confirmed(
    project, record, monkeypatch
):
    named = {found.slice_id: found.names for found in record.slices if found.names}
    chosen = frozenset(list(named)[:1])
    monkeypatch.setattr(workings, "confirmed_without_words", lambda _: chosen)
    bare = tuple(found.model_copy(update={"names": ()}) for found in record.slices)
    again = project._measure(record.model_copy(update={"slices": bare, "evidence": ()}))
    assert {found.slice_id: found.names for found in again.slices if found.names} == {
        name: named[name] for name in chosen
    }
    assert chosen


def test_run__second_time_repeats_no_work_and_gives_the_same_answer(
    project, record, world, manifest
):
    again = Project.open(
        project.folder, classifier=planted_classifier(world), embedder=PlantedEmbedder()
    )
    second = again.run()
    assert second.slices == record.slices
    assert second.evidence == record.evidence
    assert second.repairs == record.repairs
    cached = {stage.stage: stage.was_cached for stage in second.stages}
    assert cached["ingest"]
    assert cached["embed"]
    assert cached["classify"]
    assert again.embed().n_new_embeddings == 0


def test_run__other_seed__buys_no_new_halves(world, manifest, tmp_path, record):
    other = _project(tmp_path, world, manifest, seed=1).run()
    assert {found.found_on.digest for found in other.slices} == {
        found.found_on.digest for found in record.slices
    }


def test_verify__refuses_slices_found_on_other_samples(project, record, world, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(project.folder, copy)
    verify = project.settings.verify.model_copy(update={"splits": ("test",)})
    changed = Project(
        copy,
        project.settings.model_copy(update={"verify": verify}),
        classifier=planted_classifier(world),
        embedder=PlantedEmbedder(),
    )
    with pytest.raises(StoreError, match="found on other samples"):
        changed.verify(record.run_id)


def test_discover__before_ingest(tmp_path):
    with pytest.raises(StoreError, match="weakspot ingest"):
        Project.create(tmp_path).discover()


def test_ingest__source_is_not_set(tmp_path):
    with pytest.raises(ConfigError, match="No source of samples"):
        Project.create(tmp_path).ingest()


def test_discover__nothing_known_of_the_classifier(manifest, tmp_path):
    project = Project.create(tmp_path, data=str(manifest), embedder=PlantedEmbedder())
    project.ingest()
    with pytest.raises(DataError, match="Nothing is known of what the classifier predicts"):
        project.discover()


def test_embed__broken_classifier_is_noticed_before_anything_is_embedded(manifest, tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"no graph")
    project = Project.create(
        tmp_path,
        data=str(manifest),
        classifier=str(tmp_path / "broken.onnx"),
        embedder=PlantedEmbedder(),
    )
    project.ingest()
    with pytest.raises(ModelError, match="broken.onnx"):
        project.embed()
    assert not (tmp_path / ".weakspot" / "embeddings").exists()


def test_discover__no_validation_samples(world, manifest, tmp_path):
    project = _project(tmp_path, world, manifest, verify={"splits": ["validation"]})
    project.ingest()
    text = manifest.read_text().replace(",validation,", ",train,").replace(",test,", ",train,")
    other = manifest.parent / "no_validation.csv"
    other.write_text(text)
    moved = _project(tmp_path / "moved", world, other)
    moved.ingest()
    with pytest.raises(NotEnoughDataError, match="no labelled samples in validation"):
        moved.discover()


def test_create__arrays_in_memory(world, tmp_path):
    rows = world.dataset.rows_of(Split.VALIDATION)[:60]
    source = weakspot.ArraySource(
        images=[np.asarray(world.image(int(row))) for row in rows],
        labels=[world.dataset.class_names[world.dataset.labels[row]] for row in rows],
        default_split=Split.VALIDATION,
    )
    project = Project.create(
        tmp_path, data=source, classifier=planted_classifier(world), embedder=PlantedEmbedder()
    )
    assert project.ingest().n_samples == 60
    assert project.embed().n_embeddings == 60


def test_run__null_world_publishes_nothing(tmp_path):
    empty = plant(nothing(), 900, seed=8)
    files = empty.write_images(tmp_path / "world")
    record = _project(tmp_path / "project", empty, files.manifest).run()
    assert record.published() == ()
    assert record.repairs == ()
    assert any("nothing to repair" in note.note for note in record.notes)


def test_run__multi_label(tmp_path):
    from weakspot.testing.planted import spurious

    several = plant(spurious(0.95), 900, seed=4, is_multi_label=True)
    files = several.write_images(tmp_path / "world")
    record = _project(
        tmp_path / "project", several, files.manifest, data={"unlabelled_is_negative": True}
    ).run()
    assert record.classifier is not None
    assert any(name.startswith("no ") for name in record.classifier.per_class)
    assert len(record.evidence) == len(record.slices)


def test_store__is_one_so_that_a_writer_inside_a_writer_is_no_stranger(project, record):
    with project.store.writing(), project.store.writing():
        assert project.store.runs.load(record.run_id) == record


def test_dir__has_no_internals(tmp_path):
    shown = dir(Project(tmp_path, weakspot.Settings()))
    assert {"run", "ask", "repair", "nearest", "report"} <= set(shown)
    assert not {"prepared", "store", "reading", "generation_tools", "hypothesis"} & set(shown)
