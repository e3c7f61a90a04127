"""Which direction is decoded, and by a generator of which space.

Rotating the embedding of a caption towards or away from a failure direction, for generators that generate what an embedding says.
"""

from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.roles import DecodesEmbeddings, Embedder, ImageGenerator
from weakspot.core.rules import LinearRule, MembershipRule
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.data.embed import embed_phrases
from weakspot.run.preparation import CLIP, Prepared

MIN_ANGLE = 1e-6
MAX_ALPHA = 1.0


def slerp(first: AnyArray, second: AnyArray, alpha: float) -> FloatArray:
    """Return the unit vector at a share of the way along the arc from one embedding to another.

    Where the embeddings are parallel there is no arc and the first is returned; where they point in opposite directions there is no
    one shortest arc, and a fixed one of them is taken.

    Args:
        first: [d], any length but zero.
        second: [d], any length but zero.
        alpha: 0 for the first embedding, 1 for the second.

    Raises:
        ConfigError: if an embedding is zero or not finite, the two differ in length, or alpha is outside [0, 1].

    >>> slerp(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.5).round(4).tolist()
    [0.707099974155426, 0.707099974155426]
    >>> slerp(np.array([2.0, 0.0]), np.array([0.0, 1.0]), 0.0).tolist()
    [1.0, 0.0]
    """
    if not 0.0 <= alpha <= MAX_ALPHA:
        raise ConfigError("The share of a rotation lies between 0 and 1.", given=alpha)
    start, end = _unit(first), _unit(second)
    if start.shape != end.shape:
        raise ConfigError("Embeddings of two spaces cannot be mixed.", given=(len(start), len(end)))
    # The angle from both distances is exact for nearly parallel and nearly opposite embeddings, where its cosine is not.
    angle = 2.0 * np.arctan2(np.linalg.norm(start - end), np.linalg.norm(start + end))
    if angle < MIN_ANGLE:
        return np.asarray(start, dtype=np.float32)
    across = (
        _across(start, end) if angle > np.pi - MIN_ANGLE else _unit(end - (end @ start) * start)
    )
    rotated = np.cos(alpha * angle) * start + np.sin(alpha * angle) * across
    return np.asarray(_unit(rotated), dtype=np.float32)


def harder_and_easier(
    reference: AnyArray, direction: AnyArray, alphas: Sequence[float]
) -> tuple[FloatArray, FloatArray]:
    """Return the embedding of a caption, rotated by each share towards a failure direction, and away from it.

    Args:
        reference: [d] embedding of the caption that could stand under every image of the class.
        direction: [d] normal of the plane between failures and successes; it points to the failures.
        alphas: shares of the rotation, 0 for the reference itself; up to 0.3 images still show the class.

    Returns:
        Unit vectors [k, d] of the harder series, and of the easier one.

    >>> harder, easier = harder_and_easier(np.array([1.0, 0.0]), np.array([0.0, 1.0]), [0.0, 1 / 3])
    >>> harder.round(3).tolist() == [[1.0, 0.0], np.float32([0.866, 0.5]).tolist()]
    True
    >>> bool(np.allclose(easier, harder * [1, -1]))
    True
    """
    away = -np.asarray(direction, dtype=np.float64)
    harder = [slerp(reference, direction, alpha) for alpha in alphas]
    easier = [slerp(reference, away, alpha) for alpha in alphas]
    shape = (len(alphas), np.asarray(reference).size)
    return np.array(harder, dtype=np.float32).reshape(shape), np.array(
        easier, dtype=np.float32
    ).reshape(shape)


def _unit(embedding: AnyArray) -> DoubleArray:
    values = np.asarray(embedding, dtype=np.float64)
    largest = float(np.max(np.abs(values), initial=0.0))
    if values.ndim != 1 or not np.isfinite(largest) or largest == 0.0:
        raise ConfigError(
            "An embedding to rotate must be a row of finite numbers that are not all zero.",
            given=values.shape,
        )
    scaled = values / largest
    return np.asarray(scaled / np.linalg.norm(scaled), dtype=np.float64)


def _across(start: DoubleArray, end: DoubleArray) -> DoubleArray:
    """Return a fixed direction at right angles to an embedding, for rotations to its opposite."""
    if len(start) == 1:
        raise ConfigError(
            "In one dimension nothing can be rotated.", given=(start.tolist(), end.tolist())
        )
    axis = np.zeros_like(start)
    axis[int(np.argmin(np.abs(start)))] = 1.0
    return _unit(axis - (axis @ start) * start)


METHOD = "directions"
SAME_SPACE = 0.98
PROBES = (
    "a photo of a dog",
    "a red car at night",
    "a bowl of fruit on a table",
    "an old man with a hat",
)
FIX_SPACE = "Embed with the CLIP that the generator decodes ([embedder]), or choose the generator that fits the embedder."


class Decoder(ImageGenerator, DecodesEmbeddings, Protocol):
    """An image generator that also decodes embeddings."""


def chosen_slice(record: RunRecord, wanted: str) -> FailureSlice:
    """Return the slice with an id or its beginning, or the first that has a direction, confirmed ones first.

    Raises:
        ConfigError: if there is no such slice, or it has no direction in the space of images and words.
        NotEnoughDataError: if no slice has one.
    """
    ordered = list(
        {found.slice_id: found for found in (*record.findings(), *record.slices)}.values()
    )
    if wanted:
        named = [found for found in ordered if found.slice_id.startswith(wanted)]
        if len(named) != 1 or not _has_direction(named[0]):
            known = [found.slice_id for found in ordered if _has_direction(found)]
            raise ConfigError(
                "This is not the id of one slice that has a direction.",
                where=record.run_id,
                given=wanted,
                fix=f"Choose one of {known}.",
            )
        return named[0]
    found = next((one for one in ordered if one.method == METHOD and _has_direction(one)), None)
    if found is None:
        raise NotEnoughDataError(
            "The run has no slice that was found as a direction.",
            where=record.run_id,
            fix="Run `weakspot discover --method directions` first.",
        )
    return found


def normal_in_space(rule: MembershipRule) -> FloatArray:
    """Return the normal [d] of a rule's plane in the space that its embeddings are in, before they are centred and scaled.

    Raises:
        ConfigError: if the rule has no plane.
    """
    if not isinstance(rule, LinearRule):
        raise ConfigError(
            "Only slices that lie along a direction can be decoded.", given=type(rule).__name__
        )
    direction = np.asarray(rule.direction, dtype=np.float32)
    return (
        direction
        if rule.scale is None
        else np.asarray(direction / np.asarray(rule.scale, dtype=np.float32), dtype=np.float32)
    )


def refuse_other_space(decoder: Decoder, embedder: Embedder) -> None:
    """Refuse a generator that decodes another space than the embedder's: by length, and by what both make of some captions.

    Raises:
        ConfigError: if the spaces differ, or cannot be compared.
    """
    if decoder.dimension != embedder.dimension:
        what = f"The generator decodes embeddings of length {decoder.dimension}, the embedder's have {embedder.dimension}."
        raise ConfigError(what, where="[generator]", given=embedder.encoder_id, fix=FIX_SPACE)
    if decoder.space_id == embedder.encoder_id:
        return
    ours = embed_phrases(PROBES, embedder)
    cosines = np.sum(ours * decoder.embed_texts(PROBES), axis=1)
    if not cosines.min() >= SAME_SPACE:
        raise ConfigError(
            f"The generator decodes another space than the embedder's: their embeddings of the same captions have cosines from "
            f"{cosines.min():.2f} to {cosines.max():.2f}, where one space gives nearly 1.",
            where="[generator]",
            given={"generator": decoder.space_id, "embedder": embedder.encoder_id},
            fix=FIX_SPACE,
        )


def decoder_of(image_generator: ImageGenerator) -> Decoder:
    """Return the generator as one that decodes embeddings.

    Raises:
        ConfigError: if it generates from words only.
    """
    if not isinstance(image_generator, DecodesEmbeddings):
        raise ConfigError(
            "The image generator generates from words only; a direction has none.",
            where="[generator] name",
            given=image_generator.generator_id,
            fix='Set name = "unclip", with the pipeline as option model.',
        )
    return cast(Decoder, image_generator)


def embedder_of(prepared: Prepared) -> Embedder:
    """Return the embedder whose space directions are in.

    Raises:
        ConfigError: if there is none.
    """
    if prepared.embedder is None:
        raise ConfigError(
            "The project has no embedder.",
            where="[embedder]",
            fix="Configure the CLIP that the generator decodes.",
        )
    return prepared.embedder


def _has_direction(found: FailureSlice) -> bool:
    return isinstance(found.rule, LinearRule) and found.rule.space == CLIP
