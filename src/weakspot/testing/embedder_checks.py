"""Checks of embedders."""

from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.roles import Embedder
from weakspot.testing import material
from weakspot.testing.part_checks import (
    ANY_PART,
    Factory,
    can_be_sent,
    expect,
    expect_close,
    expect_no_global_randomness,
    expect_refusal,
    role_checks,
)

TOLERANCE = 2e-3
PHRASES = (
    "a photo of a red disc",
    "a photo of a dark street",
    "green",
    "a photo of a red disc on grass",
)


def _holds_embeddings(part: Any) -> bool:
    return hasattr(part, "embeddings_for")


def _prepare(part: Embedder) -> list[AnyArray]:
    return [part.prepare(image) for image in material.images()]


def _image_embeddings(part: Any) -> FloatArray:
    if _holds_embeddings(part):
        embeddings: FloatArray = part.embeddings_for(material.small_world().dataset).embeddings[
            : material.N_IMAGES
        ]
        return embeddings
    embedder: Embedder = part
    return embedder.embed_prepared(_prepare(embedder))


def ids_are_stable(factory: Factory) -> None:
    """The id is the same for every new instance and after use."""
    part: Embedder = factory()
    before = part.encoder_id
    _image_embeddings(part)
    again: Embedder = factory()
    expect(before and isinstance(before, str), "encoder_id is empty.")
    expect(
        before == part.encoder_id == again.encoder_id,
        "encoder_id changes with use or from instance to instance.",
    )


def facts_are_given(factory: Factory) -> None:
    """Dimension, image side and whether there is text are of the right kind."""
    part: Embedder = factory()
    expect(
        isinstance(part.dimension, int) and part.dimension > 0, f"dimension is {part.dimension!r}."
    )
    expect(part.image_side is None or part.image_side > 0, f"image_side is {part.image_side!r}.")
    expect(isinstance(part.has_text, bool), "has_text is no truth value.")


def image_embeddings_are_unit_embeddings(factory: Factory) -> None:
    """Images give finite float32 [n, d] of length one."""
    part: Embedder = factory()
    _expect_unit_embeddings(_image_embeddings(part), material.N_IMAGES, part.dimension)


def phrase_embeddings_are_unit_embeddings(factory: Factory) -> None:
    """Phrases give finite float32 [m, d] of length one, or a clear refusal without a text side."""
    part: Embedder = factory()
    if part.has_text:
        _expect_unit_embeddings(part.embed_texts(PHRASES), len(PHRASES), part.dimension)
        return
    with expect_refusal("Phrases were given to an embedder without a text side"):
        part.embed_texts(PHRASES)


def _expect_unit_embeddings(embeddings: FloatArray, n_rows: int, dimension: int) -> None:
    expect(
        embeddings.shape == (n_rows, dimension),
        f"embeddings have the shape {embeddings.shape}, not {(n_rows, dimension)}.",
    )
    expect(embeddings.dtype == np.float32, f"embeddings are {embeddings.dtype}, not float32.")
    expect(np.isfinite(embeddings).all(), "An embedding is not finite.")
    expect_close(
        np.linalg.norm(embeddings, axis=1),
        np.ones(n_rows),
        "Embeddings are not of length one",
        tolerance=TOLERANCE,
    )


def images_are_told_apart(factory: Factory) -> None:
    """Different images do not all get exactly the same embedding."""
    embeddings = _image_embeddings(factory())
    expect(
        np.ptp(embeddings, axis=0).max() > 0,
        "Every image gets the same embedding: are pixels read at all?",
    )


def batches_do_not_matter(factory: Factory) -> None:
    """One image or phrase at a time gives the same embeddings."""
    part: Embedder = factory()
    if not _holds_embeddings(part):
        prepared = _prepare(part)
        single = np.concatenate([part.embed_prepared([item]) for item in prepared])
        expect_close(
            single,
            part.embed_prepared(prepared),
            "One image at a time gives other embeddings",
            tolerance=TOLERANCE,
        )
    if part.has_text:
        single = np.concatenate([part.embed_texts([phrase]) for phrase in PHRASES])
        expect_close(
            single,
            part.embed_texts(PHRASES),
            "One phrase at a time gives other embeddings",
            tolerance=TOLERANCE,
        )


def same_result_twice(factory: Factory) -> None:
    """A second call, and a second instance, give the same embeddings."""
    part: Embedder = factory()
    first = _image_embeddings(part)
    expect_close(
        _image_embeddings(part), first, "A second call gives other embeddings", tolerance=TOLERANCE
    )
    expect_close(
        _image_embeddings(factory()),
        first,
        "A second instance gives other embeddings",
        tolerance=TOLERANCE,
    )


def input_stays_as_it_is(factory: Factory) -> None:
    """Neither images nor prepared arrays are changed."""
    part: Embedder = factory()
    if _holds_embeddings(part):
        with expect_refusal("A new image was given to an embedder of known samples"):
            part.prepare(material.images()[0])
        return
    image = material.images()[0]
    before = image.tobytes()
    part.prepare(image)
    expect(image.tobytes() == before, "prepare changed the image.")
    prepared = _prepare(part)
    saved = [np.asarray(item).tobytes() for item in prepared]
    part.embed_prepared(prepared)
    expect(
        [np.asarray(item).tobytes() for item in prepared] == saved,
        "embed_prepared changed the prepared images.",
    )


def no_global_randomness(factory: Factory) -> None:
    """Nothing is left to chance."""
    part: Embedder = factory()
    _image_embeddings(part)
    expect_no_global_randomness(lambda: _image_embeddings(part).round(4).tobytes())


def empty_batches_work(factory: Factory) -> None:
    """No images or phrases: no rows, of the right width."""
    part: Embedder = factory()
    if not _holds_embeddings(part):
        expect(
            part.embed_prepared([]).shape == (0, part.dimension), "No images do not give [0, d]."
        )
    if part.has_text:
        expect(part.embed_texts([]).shape == (0, part.dimension), "No phrases do not give [0, d].")


def _first_embedding(part: Any) -> FloatArray:
    return (
        _image_embeddings(part)[:1]
        if _holds_embeddings(part)
        else part.embed_prepared([part.prepare(material.images()[0])])
    )


CHECKS = role_checks(
    Embedder,
    {"can_be_sent": can_be_sent("encoder_id", _first_embedding), **ANY_PART},
    ids_are_stable,
    facts_are_given,
    image_embeddings_are_unit_embeddings,
    phrase_embeddings_are_unit_embeddings,
    images_are_told_apart,
    batches_do_not_matter,
    same_result_twice,
    input_stays_as_it_is,
    no_global_randomness,
    empty_batches_work,
)
