"""Which direction is decoded, and by a generator of which space."""

from typing import Protocol, cast

import numpy as np

from weakspot.app.preparation import JOINT, Prepared
from weakspot.core.arrays import FloatArray
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.roles import DecodesVectors, Embedder, ImageGenerator
from weakspot.core.rules import LinearRule, MembershipRule
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.embed.phrases import embed_phrases

METHOD = "directions"
SAME_SPACE = 0.98
PROBES = ("a photo of a dog", "a red car at night", "a bowl of fruit on a table", "an old man with a hat")
FIX_SPACE = "Embed with the CLIP that the generator decodes ([embedder]), or choose the generator that fits the embedder."


class Decoder(ImageGenerator, DecodesVectors, Protocol):
    """An image generator that also decodes vectors."""


def chosen_slice(record: RunRecord, wanted: str) -> FailureSlice:
    """Return the slice with an id or its beginning, or the first that has a direction, confirmed ones first.

    Raises:
        ConfigError: if there is no such slice, or it has no direction in the space of pictures and words.
        NotEnoughDataError: if no slice has one.
    """
    ordered = list({found.slice_id: found for found in (*record.findings(), *record.slices)}.values())
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
    """Return the normal [d] of a rule's plane in the space that its vectors are in, before they are centred and scaled.

    Raises:
        ConfigError: if the rule has no plane.
    """
    if not isinstance(rule, LinearRule):
        raise ConfigError("Only slices that lie along a direction can be decoded.", given=type(rule).__name__)
    direction = np.asarray(rule.direction, dtype=np.float32)
    return direction if rule.scale is None else np.asarray(direction / np.asarray(rule.scale, dtype=np.float32), dtype=np.float32)


def refuse_other_space(decoder: Decoder, embedder: Embedder) -> None:
    """Refuse a generator that decodes another space than the embedder's: by length, and by what both make of some captions.

    Raises:
        ConfigError: if the spaces differ, or cannot be compared.
    """
    if decoder.dimension != embedder.dimension:
        what = f"The generator decodes vectors of length {decoder.dimension}, the embedder's have {embedder.dimension}."
        raise ConfigError(what, where="[generator]", given=embedder.encoder_id, fix=FIX_SPACE)
    if decoder.space_id == embedder.encoder_id:
        return
    ours = embed_phrases(PROBES, embedder)
    cosines = np.sum(ours * decoder.embed_texts(PROBES), axis=1)
    if not cosines.min() >= SAME_SPACE:
        raise ConfigError(
            f"The generator decodes another space than the embedder's: their vectors of the same captions have cosines from "
            f"{cosines.min():.2f} to {cosines.max():.2f}, where one space gives nearly 1.",
            where="[generator]",
            given={"generator": decoder.space_id, "embedder": embedder.encoder_id},
            fix=FIX_SPACE,
        )


def decoder_of(drawer: ImageGenerator) -> Decoder:
    """Return the generator as one that decodes vectors.

    Raises:
        ConfigError: if it draws from words only.
    """
    if not isinstance(drawer, DecodesVectors):
        raise ConfigError(
            "The image generator draws from words only; a direction has none.",
            where="[generator] name",
            given=drawer.generator_id,
            fix='Set name = "unclip", with the pipeline as option model.',
        )
    return cast(Decoder, drawer)


def embedder_of(prepared: Prepared) -> Embedder:
    """Return the embedder whose space directions are in.

    Raises:
        ConfigError: if there is none.
    """
    if prepared.embedder is None:
        raise ConfigError("The project has no embedder.", where="[embedder]", fix="Configure the CLIP that the generator decodes.")
    return prepared.embedder


def _has_direction(found: FailureSlice) -> bool:
    return isinstance(found.rule, LinearRule) and found.rule.space == JOINT
