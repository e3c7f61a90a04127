import numpy as np
import pytest
from PIL import Image

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.run.preflight.stage import find_near_copies

N_EACH, N_COPIES = 40, 8
DRAWS = np.random.default_rng(0)


def _photograph():
    """Return blotches of colour, as large as those of a photograph."""
    tiny = DRAWS.integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(tiny).resize((120, 90), Image.Resampling.BICUBIC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Forty training and forty evaluation images; the first eight of these are training images, smaller and compressed anew."""
    made = tmp_path_factory.mktemp("photographs")
    training = [_photograph() for _ in range(N_EACH)]
    held = [image.resize((90, 68)) for image in training[:N_COPIES]]
    held += [_photograph() for _ in range(N_EACH - N_COPIES)]
    for number, image in enumerate([*training, *held]):
        image.save(made / f"{number}.jpg", quality=95 if number < N_EACH else 60)
    return made


def _samples(folder):
    # Embeddings that point roughly to the copies.
    embeddings = np.random.default_rng(1).normal(size=(2 * N_EACH, 16))
    embeddings[N_EACH : N_EACH + N_COPIES] = embeddings[:N_COPIES] + 0.3
    dataset = dataset_from_columns(
        class_names=["a"],
        labels=np.zeros(2 * N_EACH, dtype=int),
        splits=["train"] * N_EACH + ["validation"] * N_EACH,
        locations=[str(folder / f"{number}.jpg") for number in range(2 * N_EACH)],
    )
    space = EmbeddingSpace(encoder_id="e", embeddings=embeddings.astype(np.float32))
    return SampleSet(
        dataset=dataset, rows=np.arange(len(dataset)), spaces={"clip": space}, name="all"
    )


def _found(samples):
    return find_near_copies(samples, "clip", samples.dataset.rows_of(Split.VALIDATION))


def test_find_near_copies__smaller_and_compressed_anew(folder):
    found = _found(_samples(folder))
    assert found[1] == N_EACH
    assert np.flatnonzero(found[0]).tolist() == list(range(N_COPIES))


def test_find_near_copies__images_that_all_look_alike(tmp_path):
    # One scene with a little noise: every image is about as near to every other.
    scene = np.asarray(_photograph(), dtype=float)
    for number in range(2 * N_EACH):
        noise = np.repeat(np.repeat(DRAWS.normal(0, 16, (9, 12, 3)), 10, axis=0), 10, axis=1)
        shown = np.clip(scene + noise, 0, 255).astype(np.uint8)
        Image.fromarray(shown).save(tmp_path / f"{number}.jpg")
    assert not _found(_samples(tmp_path))[0].any()


def test_find_near_copies__one_colour_says_nothing(tmp_path):
    for number in range(2 * N_EACH):
        Image.new("RGB", (20, 20), (10, 120, 30)).save(tmp_path / f"{number}.jpg")
    assert not _found(_samples(tmp_path))[0].any()


def test_find_near_copies__files_that_are_gone(tmp_path):
    assert not _found(_samples(tmp_path))[0].any()


def test_find_near_copies__nothing_to_tell_by(folder):
    samples = _samples(folder)
    held = samples.dataset.rows_of(Split.VALIDATION)
    assert find_near_copies(samples, "other", held) is None
    assert find_near_copies(samples, "clip", held[:5]) is None
