import csv
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from tests.build import project_of

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot.core.roles import ObjectMask
from weakspot.generate.own_images import BackgroundWords, own_images
from weakspot.run.halves import split_in_halves
from weakspot.run.settings import Settings
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.planted import scene_embeddings
from weakspot.testing.scenes import read_marker


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, world, manifest):
    made = project_of(tmp_path_factory.mktemp("shelf"), world, manifest)
    made.ingest()
    return made.prepared()


def test_own_images__to_train_and_to_measure_share_no_sample(prepared, world):
    train, measure = (own_images(prepared, purpose, Settings()) for purpose in ("train", "measure"))
    apart = {own.digest for own in (train, measure)}
    assert len(apart) == 2
    for name in world.dataset.class_names:
        assert train.objects(name)
        assert not set(train.objects(name)) & set(measure.objects(name))


def test_own_images__a_search_never_sees_the_confirmation_half(prepared, world):
    settings = Settings()
    _, confirmation = split_in_halves(prepared.samples, settings, settings.failure.criterion())[0]
    kept_back = set(confirmation.dataset.sample_ids(confirmation.rows))
    own = own_images(prepared, "search", settings)
    seen = {sample for name in world.dataset.class_names for sample in own.objects(name)}
    seen |= set(own.backgrounds("on a striped background"))
    assert seen
    assert not seen & kept_back


def test_own_images__objects_are_of_the_class_and_backgrounds_show_the_words(prepared):
    own = own_images(prepared, "train", Settings())
    assert all(read_marker(own.image(name)).kinds == ("star",) for name in own.objects("star")[:20])
    found = own.backgrounds("on a striped background")
    assert len(found) >= 3
    assert all(read_marker(own.image(name)).background == "striped" for name in found[:10])
    assert "striped" in own.background_words
    assert set(own.background_words) <= {
        "plain",
        "striped",
        "checked",
        "dotted",
        "grassy",
        "gradient",
        "wavy",
        "brick",
        "grass",
    }


def test_own_images__a_place_that_no_image_shows_has_none(prepared):
    own = own_images(prepared, "train", Settings())
    assert own.backgrounds("on the moon") == ()
    assert own.backgrounds(" ") == ()
    assert own.mask(own.objects("disc")[0]) is None


def test_own_images__masks_come_from_a_column(tmp_path, world):
    rows = world.dataset.rows_of(Split.TRAIN)[:12]
    world.write_images(tmp_path, rows=rows)
    with next(tmp_path.glob("*.csv")).open(newline="") as stream:
        entries = list(csv.DictReader(stream))
    Image.new("L", (64, 64), 255).save(tmp_path / "mask.png")
    for number, entry in enumerate(entries):
        entry["mask"] = "mask.png" if number == 0 else ""
    with (tmp_path / "manifest.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(entries[0]))
        writer.writeheader()
        writer.writerows(entries)
    project = project_of(tmp_path / "project", world, tmp_path / "manifest.csv")
    project.ingest()
    own = own_images(project.prepared(), "train", Settings(), masks_from=tmp_path)
    masks = [own.mask(name) for kind in world.dataset.class_names for name in own.objects(kind)]
    assert [mask.size for mask in masks if mask is not None] == [(64, 64)]


def test_own_images__without_any_image_of_the_split_it_is_said(tmp_path, world):
    rows = world.dataset.rows_of(Split.VALIDATION)[:60]
    manifest = world.write_images(tmp_path, rows=rows).manifest
    project = project_of(tmp_path / "project", world, manifest)
    project.ingest()
    with pytest.raises(DataError, match="none in the splits train and pool"):
        own_images(project.prepared(), "train", Settings())


def test_background_words__without_a_text_side_no_words_are_known():
    words = BackgroundWords.none()
    assert words.known == ()
    assert len(words.places("on grass")) == 0


def test_background_words__images_without_a_embedding_show_nothing(world):
    embeddings = scene_embeddings(world.codes[:200], world.instances[:200], noise_scale=0.05)
    lost = embeddings.copy()
    lost[:100] = np.nan
    found = BackgroundWords.of(lost, PlantedEmbedder().embed_texts).places("on a brick background")
    assert len(found)
    assert found.min() >= 100


class Everything:
    """Takes all that it sees for the object."""

    segmenter_id = "everything-1"

    def segment(self, images, *, class_names):
        return [
            ObjectMask(coverage=np.ones((4, 4), dtype=np.float32), quality=1.0, refused="")
            for _ in images
        ]


def test_own_images__an_object_is_looked_for_within_its_box(prepared):
    dataset = prepared.samples.dataset
    boxes = pa.array(["8 8 24 24" if row % 2 else None for row in range(len(dataset))])
    boxed = replace(
        prepared,
        samples=replace(prepared.samples, dataset=dataset.with_metadata({"box": boxes})),
    )
    masks = SimpleNamespace(segmenter=Everything(), of=lambda rows, name: [])
    own = own_images(boxed, "train", Settings(), masks=masks)
    known = dict(zip(dataset.sample_ids(), boxes.to_pylist(), strict=True))
    name = next(name for name in own.objects("star") if known[name])
    coverage, refused = own.found(name, "star")
    assert refused == ""
    assert 0.01 < coverage.mean() < 0.3
    assert own.digest != own_images(prepared, "train", Settings(), masks=masks).digest
