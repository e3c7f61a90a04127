"""Checks of embedders.

An embedder with `vectors_for(dataset)` holds vectors of known samples and cannot embed new pictures; it is asked for those of the
planted world.
"""

from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.roles import Embedder
from weakspot.testing.checks import material
from weakspot.testing.checks.expectation import Check, Factory, expect, expect_close, expect_no_global_randomness, expect_refusal
from weakspot.testing.checks.parts import ANY_PART, implements
from weakspot.testing.checks.sending import can_be_sent

TOLERANCE = 2e-3
PHRASES = ("a photo of a red disc", "a photo of a dark street", "green", "a photo of a red disc on grass")


def _holds_vectors(part: Any) -> bool:
    return hasattr(part, "vectors_for")


def _prepared(part: Embedder) -> list[AnyArray]:
    return [part.prepare(picture) for picture in material.pictures()]


def _picture_vectors(part: Any) -> FloatArray:
    if _holds_vectors(part):
        vectors: FloatArray = part.vectors_for(material.small_world().dataset).vectors[: material.N_PICTURES]
        return vectors
    embedder: Embedder = part
    return embedder.embed_prepared(_prepared(embedder))


def ids_are_stable(factory: Factory) -> None:
    """The id is the same for every new instance and after use."""
    part: Embedder = factory()
    before = part.encoder_id
    _picture_vectors(part)
    again: Embedder = factory()
    expect(before and isinstance(before, str), "encoder_id is empty.")
    expect(before == part.encoder_id == again.encoder_id, "encoder_id changes with use or from instance to instance.")


def facts_are_given(factory: Factory) -> None:
    """Dimension, picture side and whether there is text are of the right kind."""
    part: Embedder = factory()
    expect(isinstance(part.dimension, int) and part.dimension > 0, f"dimension is {part.dimension!r}.")
    expect(part.picture_side is None or part.picture_side > 0, f"picture_side is {part.picture_side!r}.")
    expect(isinstance(part.has_text, bool), "has_text is no truth value.")


def picture_vectors_are_unit_vectors(factory: Factory) -> None:
    """Pictures give finite float32 [n, d] of length one."""
    part: Embedder = factory()
    _expect_unit_vectors(_picture_vectors(part), material.N_PICTURES, part.dimension)


def phrase_vectors_are_unit_vectors(factory: Factory) -> None:
    """Phrases give finite float32 [m, d] of length one, or a clear refusal without a text side."""
    part: Embedder = factory()
    if part.has_text:
        _expect_unit_vectors(part.embed_texts(PHRASES), len(PHRASES), part.dimension)
        return
    with expect_refusal("Phrases were given to an embedder without a text side"):
        part.embed_texts(PHRASES)


def _expect_unit_vectors(vectors: FloatArray, n_rows: int, dimension: int) -> None:
    expect(vectors.shape == (n_rows, dimension), f"vectors have the shape {vectors.shape}, not {(n_rows, dimension)}.")
    expect(vectors.dtype == np.float32, f"vectors are {vectors.dtype}, not float32.")
    expect(np.isfinite(vectors).all(), "A vector is not finite.")
    expect_close(np.linalg.norm(vectors, axis=1), np.ones(n_rows), "Vectors are not of length one", tolerance=TOLERANCE)


def pictures_are_told_apart(factory: Factory) -> None:
    """Different pictures do not all get exactly the same vector."""
    vectors = _picture_vectors(factory())
    expect(np.ptp(vectors, axis=0).max() > 0, "Every picture gets the same vector: are pixels read at all?")


def batches_do_not_matter(factory: Factory) -> None:
    """One picture or phrase at a time gives the same vectors."""
    part: Embedder = factory()
    if not _holds_vectors(part):
        prepared = _prepared(part)
        single = np.concatenate([part.embed_prepared([item]) for item in prepared])
        expect_close(single, part.embed_prepared(prepared), "One picture at a time gives other vectors", tolerance=TOLERANCE)
    if part.has_text:
        single = np.concatenate([part.embed_texts([phrase]) for phrase in PHRASES])
        expect_close(single, part.embed_texts(PHRASES), "One phrase at a time gives other vectors", tolerance=TOLERANCE)


def same_result_twice(factory: Factory) -> None:
    """A second call, and a second instance, give the same vectors."""
    part: Embedder = factory()
    first = _picture_vectors(part)
    expect_close(_picture_vectors(part), first, "A second call gives other vectors", tolerance=TOLERANCE)
    expect_close(_picture_vectors(factory()), first, "A second instance gives other vectors", tolerance=TOLERANCE)


def input_stays_as_it_is(factory: Factory) -> None:
    """Neither pictures nor prepared arrays are changed."""
    part: Embedder = factory()
    if _holds_vectors(part):
        with expect_refusal("A new picture was given to an embedder of known samples"):
            part.prepare(material.pictures()[0])
        return
    picture = material.pictures()[0]
    before = picture.tobytes()
    part.prepare(picture)
    expect(picture.tobytes() == before, "prepare changed the picture.")
    prepared = _prepared(part)
    saved = [np.asarray(item).tobytes() for item in prepared]
    part.embed_prepared(prepared)
    expect([np.asarray(item).tobytes() for item in prepared] == saved, "embed_prepared changed the prepared pictures.")


def no_global_randomness(factory: Factory) -> None:
    """Nothing is left to chance."""
    part: Embedder = factory()
    _picture_vectors(part)
    expect_no_global_randomness(lambda: _picture_vectors(part).round(4).tobytes())


def empty_batches_work(factory: Factory) -> None:
    """No pictures or phrases: no rows, of the right width."""
    part: Embedder = factory()
    if not _holds_vectors(part):
        expect(part.embed_prepared([]).shape == (0, part.dimension), "No pictures do not give [0, d].")
    if part.has_text:
        expect(part.embed_texts([]).shape == (0, part.dimension), "No phrases do not give [0, d].")


def _first_vector(part: Any) -> FloatArray:
    return _picture_vectors(part)[:1] if _holds_vectors(part) else part.embed_prepared([part.prepare(material.pictures()[0])])


CHECKS: dict[str, Check] = {
    "implements_role": implements(Embedder),
    "can_be_sent": can_be_sent("encoder_id", _first_vector),
    **ANY_PART,
    **{
        check.__name__: check
        for check in (
            ids_are_stable,
            facts_are_given,
            picture_vectors_are_unit_vectors,
            phrase_vectors_are_unit_vectors,
            pictures_are_told_apart,
            batches_do_not_matter,
            same_result_twice,
            input_stays_as_it_is,
            no_global_randomness,
            empty_batches_work,
        )
    },
}
