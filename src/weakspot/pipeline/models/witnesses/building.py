"""Which witnesses a project has."""

from collections.abc import Sequence
from typing import Any

from weakspot.backends.embedded import text_reader
from weakspot.backends.embedded.objects_network import ObjectsNetwork
from weakspot.backends.embedded.scenes_network import ScenesNetwork
from weakspot.backends.packages.registry_source import RegistryFile
from weakspot.core.roles import Embedder, Segmenter
from weakspot.core.run import Progress
from weakspot.pipeline.models.embedding import KnowsEmbeddings
from weakspot.pipeline.models.witnesses.masks import MasksWitness
from weakspot.pipeline.models.witnesses.objects import ObjectsWitness
from weakspot.pipeline.models.witnesses.properties import PropertiesWitness
from weakspot.pipeline.models.witnesses.scenes import ScenesWitness
from weakspot.pipeline.models.witnesses.text import TextWitness
from weakspot.pipeline.models.witnesses.witness import Witness
from weakspot.pipeline.witness_settings import WitnessKind, WitnessSettings

OWN_MODELS = "weakspot.models."
WITNESS_FILES: dict[WitnessKind, tuple[RegistryFile, ...]] = {
    "text": text_reader.FILES,
    "objects": ObjectsNetwork.source.files,
    "scenes": ScenesNetwork.source.files,
}
"""What is fetched when a witness is first asked."""


def build_witnesses(
    settings: WitnessSettings,
    *,
    embedder: Embedder | None,
    segmenter: Segmenter | None,
    providers: Sequence[str] | None = None,
    progress: Progress,
) -> tuple[Witness, ...]:
    """Return the configured witnesses; none of them fetches or loads anything before it is asked.

    Where they only come when asked, they stand beside encoders that learnt their words from photographs: an embedder that was handed
    over, or looks at no image, is taken at its word.

    Args:
        settings: section `witnesses` of weakspot.toml.
        embedder: whose words are to be witnessed.
        segmenter: cuts out objects; None if there is none.
        providers: execution providers of their networks; None for the best that starts.
        progress: told the bytes of a first download.
    """
    is_ours = (
        embedder is not None
        and embedder.has_text
        and not isinstance(embedder, KnowsEmbeddings)
        and type(embedder).__module__.startswith(OWN_MODELS)
    )
    if settings.on == "none" or (settings.on == "asked" and not is_ours):
        return ()
    given: dict[str, Any] = {"providers": providers, "progress": progress}
    every: dict[str, Witness] = {
        "text": TextWitness(reader=text_reader.TextReader(**given)),
        "objects": ObjectsWitness(network=ObjectsNetwork(**given)),
        "scenes": ScenesWitness(network=ScenesNetwork(**given)),
        "properties": PropertiesWitness(),
    }
    if segmenter is not None:
        every["masks"] = MasksWitness(segmenter=segmenter)
    return tuple(every[kind] for kind in settings.kinds if kind in every)
