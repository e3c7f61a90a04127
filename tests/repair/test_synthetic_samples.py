import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError, UnavailableError
from weakspot.core.failures import FailureCriterion
from weakspot.core.roles import ClassifierOutput
from weakspot.core.run import no_progress
from weakspot.data.settings import DataSettings
from weakspot.generate.generated_folder import generated_samples
from weakspot.repair.synthetic_samples import with_synthetic
from weakspot.run import loop
from weakspot.run.models import RunModels
from weakspot.run.preparation import Preparation
from weakspot.run.settings import Settings
from weakspot.run.stage_clock import StageClock, new_record
from weakspot.store.project import ProjectStore
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator, planted_classifier

PROMPTS = {"disc": ["A photo of a green disc", "A photo of a disc"], "star": ["A photo of a star"]}


@pytest.fixture(scope="module")
def settings(manifest):
    return Settings(data=DataSettings(source=str(manifest)))


@pytest.fixture(scope="module")
def store(tmp_path_factory, settings):
    made = ProjectStore.create(tmp_path_factory.mktemp("project"))
    loop.ingest_samples(made, loop.open_data(settings.data, made.root), settings, no_progress)
    return made


def _prepared(store, settings, world):
    return Preparation(
        store=store,
        models=RunModels(
            settings=settings,
            folder=store.root,
            ready_classifier=planted_classifier(world),
            ready_embedder=PlantedEmbedder(),
        ),
        clock=StageClock(),
    ).run()


@pytest.fixture(scope="module")
def prepared(store, settings, world):
    return _prepared(store, settings, world)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return generated_samples(
        PlantedImageGenerator(), PROMPTS, tmp_path_factory.mktemp("generated"), n_each=4, seed=1
    )


@pytest.fixture
def copied(images, tmp_path):
    return Path(shutil.copytree(images, tmp_path / "images"))


@pytest.fixture
def join(prepared, settings, store):
    return lambda folder, **changes: with_synthetic(
        replace(prepared, **changes), folder, settings=settings, store=store
    )


def test_with_synthetic__project_rows_come_first_and_keep_their_numbers(join, images, prepared):
    before, after = prepared.samples, join(images).samples
    n_rows = len(before.dataset)
    assert len(after.dataset) == n_rows + 12
    assert np.array_equal(after.rows, np.arange(n_rows + 12))
    assert after.dataset.sample_ids(np.arange(n_rows)) == before.dataset.sample_ids()
    assert np.array_equal(after.dataset.probabilities[:n_rows], before.dataset.probabilities)
    assert np.array_equal(after.dataset.predictions[:n_rows], before.dataset.predictions)
    assert np.array_equal(after.dataset.splits[:n_rows], before.dataset.splits)
    for name in ("clip", "features"):
        assert np.array_equal(after.space(name).embeddings[:n_rows], before.space(name).embeddings)
        assert after.space(name).encoder_id == before.space(name).encoder_id
    assert np.array_equal(after.reference_rows, before.reference_rows)
    assert set(before.dataset.metadata_names) <= set(after.dataset.metadata_names)


def test_with_synthetic__generated_samples_are_classified_and_embedded(join, images, world):
    samples = join(images).samples
    dataset, classifier = samples.dataset, planted_classifier(world)
    rows = dataset.rows_of(Split.SYNTHETIC)
    assert rows.tolist() == list(range(900, 912))
    assert [dataset.class_names[code] for code in dataset.labels[rows]] == ["disc"] * 8 + [
        "star"
    ] * 4
    prompts = dataset.metadata("prompt").take(pa.array(rows)).to_pylist()
    assert prompts[:5] == ["A photo of a green disc"] * 4 + ["A photo of a disc"]
    assert set(dataset.metadata("generator").take(pa.array(rows)).to_pylist()) == {
        "planted-image-1-64"
    }
    assert dataset.metadata("generator").take(pa.array(np.arange(900))).null_count == 900
    # What is stored is what the classifier says, in the project's order of classes.
    said = classifier.head.probabilities(np.asarray(samples.space("features").embeddings[rows]))
    columns = [classifier.class_names.index(name) for name in dataset.class_names]
    assert dataset.probabilities[rows] == pytest.approx(said[:, columns], abs=1e-6)
    assert np.isfinite(samples.space("clip").embeddings[rows]).all()


def test_with_synthetic__evidence_and_causes_do_not_count_generated_samples(
    join, images, prepared, settings
):
    criterion = FailureCriterion()

    def verified(one):
        record = new_record(settings, inputs={}, criterion="wrong")
        record = loop.discover_slices(record, one.samples, settings, criterion, one.assistants)
        return loop.verify_slices(record, one.samples, settings, criterion)

    alone, together = verified(prepared), verified(join(images))
    assert len(alone.slices) >= 1
    assert together.slices == alone.slices
    assert together.evidence == alone.evidence


def test_with_synthetic__nothing_readable_is_an_error(tmp_path, join):
    (tmp_path / "disc").mkdir()
    (tmp_path / "disc" / "a.png").write_bytes(b"no image")
    with pytest.raises(NotEnoughDataError, match="Not one of 1 samples can be used"):
        join(tmp_path)


def test_with_synthetic__an_unknown_class_folder(copied, join):
    (copied / "metadata.csv").unlink()
    (copied / "disc").rename(copied / "disk")
    with pytest.raises(
        DataError, match=r"8 samples have the unknown label 'disk' \(did you mean 'disc'\?\)"
    ):
        join(copied)


@pytest.mark.parametrize("split", [Split.VALIDATION, Split.TEST])
def test_with_synthetic__images_that_are_verified_on_are_refused(copied, join, prepared, split):
    dataset = prepared.samples.dataset
    taken = dataset.rows_of(split)[:7]
    (copied / "metadata.csv").unlink()
    for number, location in enumerate(dataset.locations(taken)):
        shutil.copy(location, copied / "disc" / f"copy{number}.png")
    with pytest.raises(
        DataError,
        match=r"7 generated images are also validation or test samples.*disc/copy0.png.* and 2 more",
    ):
        join(copied)


def test_with_synthetic__a_table_that_names_a_verifying_split_is_refused(copied, join):
    table = copied / "metadata.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0] + ",split", *[line + ",test" for line in lines[1:]]]))
    with pytest.raises(DataError, match="12 generated samples.* and 7 more"):
        join(copied)


def test_with_synthetic__images_that_the_project_has_are_left_out(copied, join, prepared, images):
    dataset = prepared.samples.dataset
    (copied / "metadata.csv").unlink()
    (own,) = dataset.locations(dataset.rows_of(Split.TRAIN)[:1])
    shutil.copy(own, copied / "disc" / "copy.png")
    shutil.copy(copied / "disc" / "000000.png", copied / "disc" / "again.png")
    assert len(join(copied).samples.dataset) == 912
    shutil.rmtree(copied / "disc")
    shutil.rmtree(copied / "star")
    (copied / "disc").mkdir()
    shutil.copy(own, copied / "disc" / "copy.png")
    with pytest.raises(NotEnoughDataError, match="has all 1 generated images already"):
        join(copied)
    # A project that has them as generated samples needs nothing more.
    once = join(images)
    assert len(join(images, samples=once.samples).samples.dataset) == 912


def test_with_synthetic__assistants_say_nothing_of_new_rows(join, images, prepared):
    asked = Assistants(
        captions=lambda rows: [f"row {row}" for row in rows],
        answers=lambda rows, question: [question] * len(rows),
    )
    found = join(images, assistants=asked).assistants
    assert found.captions(np.array([3, 905, 7])) == ["row 3", "", "row 7"]
    assert found.answers(np.array([905, 3]), "where?") == ["", "where?"]
    assert join(images, assistants=Assistants()).assistants.captions is None


def test_with_synthetic__spaces_of_others_have_no_embedding_for_new_rows(join, images, prepared):
    joint = prepared.samples.space("clip")
    samples = replace(prepared.samples, spaces={**prepared.samples.spaces, "second": joint})
    found = join(images, samples=samples, embedder=None).samples
    assert np.isnan(found.space("second").embeddings[900:]).all()
    assert np.isnan(found.space("clip").embeddings[900:]).all()
    assert np.isfinite(found.space("features").embeddings[900:]).all()


def test_with_synthetic__needs_a_classifier_and_a_folder(join, images, tmp_path):
    with pytest.raises(ConfigError, match="Without a classifier"):
        join(images, classifier=None)
    with pytest.raises(UnavailableError, match="no such folder"):
        join(tmp_path / "nowhere")


class _ReadsEmbeddings:
    """A classifier of joint embeddings: the class whose name is nearest, with the embeddings themselves as features."""

    reads = "embeddings"
    classifier_id = "by-embeddings"
    task = Task.SINGLE_LABEL
    head = None
    class_names = ("disc", "square", "star", "triangle")

    def classify(self, prepared):
        embeddings = np.stack(prepared)
        powers = np.exp(20 * embeddings @ PlantedEmbedder().embed_texts(self.class_names).T)
        return ClassifierOutput(
            probabilities=powers / powers.sum(axis=1, keepdims=True), features=embeddings
        )


def test_with_synthetic__classifiers_of_embeddings_are_asked_about_embeddings(
    join, images, prepared
):
    joint = prepared.samples.space("clip")
    samples = replace(prepared.samples, spaces={"clip": joint, "features": joint})
    found = join(images, classifier=_ReadsEmbeddings(), samples=samples).samples
    assert np.array_equal(
        found.space("features").embeddings[900:], found.space("clip").embeddings[900:]
    )
    assert found.dataset.predictions[900:].tolist() == found.dataset.labels[900:].tolist()
