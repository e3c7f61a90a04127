import pytest
from tests.run.models.witnesses.tiny_segmenter import CornerSegmenter

from weakspot.core.run import no_progress
from weakspot.models.embedded.encoder import EmbeddedDefault
from weakspot.run.settings import WitnessSettings
from weakspot.run.witnesses import build_witnesses
from weakspot.testing.fakes import PlantedEmbedder


def _kinds(embedder=None, segmenter=None, **settings):
    found = build_witnesses(
        WitnessSettings(**settings), embedder=embedder, segmenter=segmenter, progress=no_progress
    )
    return [one.kind for one in found]


def test_build_witnesses__beside_an_encoder_that_learnt_its_words():
    assert _kinds(EmbeddedDefault()) == ["text", "objects", "scenes", "properties"]
    assert _kinds(EmbeddedDefault(), CornerSegmenter())[-1] == "masks"


@pytest.mark.parametrize("embedder", [None, PlantedEmbedder()])
def test_build_witnesses__nobody_where_words_are_exact_or_there_are_none(embedder):
    assert _kinds(embedder) == []
    assert _kinds(embedder, on="all") == ["text", "objects", "scenes", "properties"]


def test_build_witnesses__compute_by_the_projects_provider():
    found = build_witnesses(
        WitnessSettings(kinds=("text", "objects", "scenes")),
        embedder=EmbeddedDefault(),
        segmenter=None,
        providers=("cuda",),
        progress=no_progress,
    )
    parts = [getattr(one, "network", None) or one.reader for one in found]
    assert [one._providers for one in parts] == [("cuda",)] * 3


def test_build_witnesses__as_configured():
    assert _kinds(EmbeddedDefault(), on="none") == []
    assert _kinds(EmbeddedDefault(), kinds=("objects", "masks")) == ["objects"]
