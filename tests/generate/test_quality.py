import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ConfigError, MissingExtraError, ModelError, UnavailableError
from weakspot.core.generated import PASS, GenerationRequest
from weakspot.generate.quality import (
    OffClass,
    QualityCheck,
    QualityMemory,
    fingerprint_of,
    is_rejected,
)
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator

SIDE = 64


def _planted(prompt, n=1):
    return [
        made.image for made in PlantedImageGenerator().generate([prompt] * n, seeds=list(range(n)))
    ]


def _flat(colour):
    return Image.new("RGB", (SIDE, SIDE), colour)


def _speckled(colour, share, other=(255, 255, 255)):
    pixels = np.array(_flat(colour))
    pixels.reshape(-1, 3)[: int(share * SIDE * SIDE)] = other
    return Image.fromarray(pixels)


def _request(seed, prompt="a disc", class_name="disc"):
    return GenerationRequest(class_name=class_name, prompt=prompt, seed=seed)


@pytest.mark.parametrize("image", [_flat("black"), _flat((9, 10, 3)), _speckled((4, 4, 4), 0.003)])
def test_look__black(image):
    verdicts = QualityCheck().look(image)
    assert "nearly black" in verdicts["black"]
    assert is_rejected(verdicts)


@pytest.mark.parametrize(
    "image",
    [
        _flat("white"),
        _flat((200, 30, 30)),
        _flat((0, 0, 180)),
        _speckled((90, 90, 90), 0.5, (92, 91, 90)),
    ],
)
def test_look__blank_but_not_black(image):
    verdicts = QualityCheck().look(image)
    assert verdicts["black"] == PASS
    assert "standard deviation" in verdicts["blank"]


def test_look__dark_and_plain_scenes_pass():
    for prompt in (
        "a small disc in the dark",
        "a white ring on a plain background",
        "a blue square in bright light",
    ):
        for image in _planted(prompt, 20):
            assert QualityCheck().look(image) == {"black": PASS, "blank": PASS}
    assert not is_rejected(QualityCheck().look(_speckled((0, 0, 0), 0.02)))


def test_size__one_that_was_asked_for():
    memory = QualityMemory(quality=QualityCheck(size=(64, 48)))
    assert memory.size_verdict((64, 48)) == PASS
    assert "instead of 64 x 48" in memory.size_verdict((48, 64))


def test_size__the_rarer_one_is_wrong():
    memory = QualityMemory(quality=QualityCheck())
    verdicts = [
        memory.size_verdict(size) for size in ((64, 64), (64, 64), (32, 32), (64, 64), (32, 32))
    ]
    assert [said == PASS for said in verdicts] == [True, True, False, True, False]
    assert "others of this generator have 64 x 64" in verdicts[2]


def test_size__any_but_not_tiny():
    memory = QualityMemory(quality=QualityCheck(has_one_size=False))
    assert [memory.size_verdict(size) == PASS for size in ((32, 32), (64, 64), (15, 400), (0, 0), (90, 80))] == [
        True, True, False, False, True,
    ]  # fmt: skip


def test_copy_verdict__only_of_kept_images_of_the_same_class_and_prompt():
    memory = QualityMemory(quality=QualityCheck())
    first, second = map(fingerprint_of, _planted("a disc", 2))
    assert memory.copy_verdict(_request(1), first) == PASS
    assert memory.copy_verdict(_request(2), first) == PASS
    memory.keep(_request(1), first)
    assert "seed 1" in memory.copy_verdict(_request(2), first)
    assert memory.copy_verdict(_request(2), second) == PASS
    assert memory.copy_verdict(_request(1), first) == PASS
    assert memory.copy_verdict(_request(2, prompt="a round disc"), first) == PASS
    assert memory.copy_verdict(_request(2, class_name="star"), first) == PASS


def test_copy_verdict__bits():
    image = _planted("a disc")[0]
    near = Image.fromarray((np.asarray(image) // 8 * 8 + 4).astype(np.uint8))
    n_bits = (fingerprint_of(image).bits ^ fingerprint_of(near).bits).bit_count()
    assert n_bits > 0
    for allowed, is_copy in ((n_bits, True), (n_bits - 1, False), (None, False)):
        memory = QualityMemory(quality=QualityCheck(near_duplicate_bits=allowed))
        memory.keep(_request(1), fingerprint_of(image))
        assert (memory.copy_verdict(_request(2), fingerprint_of(near)) != PASS) == is_copy


def _off_class(margin=0.05, embed_images=None, names=("disc", "star")):
    embedder = PlantedEmbedder()

    def embed(images):
        return embedder.embed_prepared([embedder.prepare(image) for image in images])

    embeddings = embedder.embed_texts([f"a photo of a {name}" for name in names])
    return OffClass(
        embed_images=embed_images or embed,
        class_embeddings=embeddings,
        class_names=names,
        margin=margin,
    )


def test_off_class__another_class_is_closer():
    images = _planted("a green disc", 4) + _planted("a green star", 4)
    verdicts = _off_class().verdicts(images, ["disc"] * 8)
    assert verdicts[:4] == [PASS] * 4
    assert all("closer to 'star'" in said for said in verdicts[4:])
    assert _off_class(margin=2.0).verdicts(images, ["disc"] * 8) == [PASS] * 8
    assert _off_class().verdicts(images[4:], ["ring"] * 4) == [PASS] * 4
    assert _off_class().verdicts([], []) == []


def test_off_class__a_image_that_cannot_be_embedded_costs_only_itself():
    verdicts = _off_class().verdicts(
        [*_planted("a disc", 2), _flat("red"), *_planted("a star")], ["disc"] * 4
    )
    assert verdicts[:2] == [PASS, PASS]
    assert "cannot be embedded" in verdicts[2]
    assert "closer to" in verdicts[3]


@pytest.mark.parametrize(
    "embed",
    [
        lambda _: np.full((1, 64), np.nan),
        lambda _: np.zeros((1, 3)),
        lambda _: None,
        lambda _: (_ for _ in ()).throw(ModelError("no")),
    ],
)
def test_off_class__nonsense_of_an_embedder_is_a_verdict(embed):
    (said,) = _off_class(embed_images=embed).verdicts(_planted("a disc"), ["disc"])
    assert "cannot be embedded" in said


@pytest.mark.parametrize(
    "error",
    [MissingExtraError("torch", extra="torch", purpose="Embedders"), UnavailableError("gone")],
)
def test_off_class__an_embedder_that_is_gone_is_an_error(error):
    def embed(_):
        raise error

    with pytest.raises(type(error)):
        _off_class(embed_images=embed).verdicts(_planted("a disc", 2), ["disc"] * 2)


def test_off_class__classes_and_embeddings_must_fit():
    with pytest.raises(ConfigError, match="one embedding"):
        OffClass(
            embed_images=lambda _: np.zeros((1, 2)),
            class_embeddings=np.zeros((3, 2)),
            class_names=("a",),
            margin=0.1,
        )


def test_identity__changes_with_every_setting():
    checks = [
        QualityCheck(),
        QualityCheck(near_duplicate_bits=4),
        QualityCheck(near_duplicate_bits=None),
        QualityCheck(dark_level=3),
        QualityCheck(dark_share=0.9),
        QualityCheck(least_side=3),
        QualityCheck(least_deviation=1.0),
        QualityCheck(size=(3, 4)),
        QualityCheck(has_one_size=False),
        QualityCheck(off_class=_off_class()),
        QualityCheck(off_class=_off_class(0.1)),
        QualityCheck(off_class=_off_class(names=("disc", "ring"))),
    ]
    assert len({quality.identity for quality in checks}) == len(checks)
    assert (
        QualityCheck(off_class=_off_class()).identity
        == QualityCheck(off_class=_off_class()).identity
    )
