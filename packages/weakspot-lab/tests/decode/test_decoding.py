import csv
import json
from dataclasses import dataclass, field

import numpy as np
import pytest
from PIL import Image

import weakspot
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.roles import GeneratedImage
from weakspot.core.rules import ColumnRule, LinearRule
from weakspot.project.project import Project
from weakspot.testing.fakes import PlantedEmbedder, PlantedImageGenerator, planted_classifier
from weakspot_lab.decode.decoding import DecodeRequest, OneEmbedding, decode_direction
from weakspot_lab.decode.files import explanation, write_decoded
from weakspot_lab.decode.space import chosen_slice, normal_in_space, refuse_other_space

ASKED = DecodeRequest(alphas=(0.0, 0.15, 0.3), n_each=8)


@dataclass(frozen=True, kw_only=True)
class NearestScene:
    """Decodes an embedding of the planted space: of some scenes that a prompt leaves open, the one nearest to the embedding."""

    n_scenes: int = 24
    asked: list = field(default_factory=list)

    space_id = PlantedEmbedder().encoder_id
    dimension = PlantedEmbedder().dimension
    generator_id = "nearest-scene"

    def embed_texts(self, texts):
        return PlantedEmbedder().embed_texts(texts)

    def generate(self, prompts, *, seeds):
        return self.decode(self.embed_texts(prompts), prompts=prompts, seeds=seeds)

    def decode(self, embeddings, *, prompts, seeds):
        self.asked.extend(seeds)
        return [self._decoded(*each) for each in zip(embeddings, prompts, seeds, strict=True)]

    def _decoded(self, embedding, prompt, seed):
        embedder = PlantedEmbedder()
        own = [1000 * seed + number for number in range(self.n_scenes)]
        scenes = PlantedImageGenerator().generate([prompt] * self.n_scenes, seeds=own)
        found = embedder.embed_prepared([embedder.prepare(one.image) for one in scenes])
        return GeneratedImage(
            image=scenes[int((found @ embedding).argmax())].image,
            prompt=prompt,
            seed=seed,
            generator_id=self.generator_id,
        )


@pytest.fixture(scope="module")
def project(tmp_path_factory, world, manifest):
    made = Project.create(
        tmp_path_factory.mktemp("decoded"),
        data=str(manifest),
        classifier=planted_classifier(world),
        embedder=PlantedEmbedder(),
        settings=weakspot.Settings(
            generator={"name": "planted", "near_duplicate_bits": 0},
            discover={"methods": ["directions"]},
        ),
    )
    made.ingest()
    made.verify(made.discover().run_id)
    return made


@pytest.fixture(scope="module")
def result(project):
    return decode_direction(project, ASKED, generator=NearestScene())


def _rates(facts, series):
    return [point.failures.value for point in facts.points if point.series == series]


def test_decode__images_towards_the_direction_fail_more_often_than_those_away_from_it(result):
    facts = result.facts
    assert (facts.class_name, facts.caption) == ("disc", "a photo of a disc")
    harder, easier = _rates(facts, "harder"), _rates(facts, "easier")
    assert harder[0] == easier[0]
    assert harder[0] < harder[-1]
    assert easier[-1] < harder[-1]
    assert all(
        point.failures.total + sum(point.rejected.values()) == point.n_generated == 8
        for point in facts.points
    )


def test_decode__the_same_seeds_at_every_share_and_nothing_is_drawn_twice(project, result):
    generator = NearestScene(n_scenes=25)
    first = decode_direction(
        project, DecodeRequest(alphas=(0.0, 0.2), n_each=3), generator=generator
    )
    seeds = [[one.generated.request.seed for one in row] for row in first.draws]
    assert all(row == seeds[0] and len(set(row)) == 3 for row in seeds)
    n_distinct_embeddings = 3
    n_asked = len(generator.asked)
    again = decode_direction(
        project, DecodeRequest(alphas=(0.0, 0.2), n_each=3), generator=generator
    )
    # Decoders of one name share their generated images: what the first test drew at share 0 may be there already.
    assert n_asked <= n_distinct_embeddings * 3
    assert len(generator.asked) == n_asked
    assert again.facts == first.facts


def test_write_decoded__leaves_images_table_sheet_and_record(result, tmp_path):
    sheet, table, record = write_decoded(result, tmp_path / "out")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == 2 * 3 * 8
    for row in rows:
        assert row["synthetic"] == "true"
        assert row["generator"].startswith("nearest-scene#")
        assert (row["fails"] == "") == (row["image"] == "")
        assert not row["image"] or (table.parent / row["image"]).read_bytes().startswith(b"\x89PNG")
    assert {row["series"] for row in rows} == {"harder", "easier"}
    with Image.open(sheet) as shown:
        assert shown.width > 3 * 140
        assert shown.height > 6 * 140
    assert json.loads(record.read_text())["slice_id"] == result.facts.slice_id


def test_explanation__gives_every_share_with_its_interval(result):
    lines = list(explanation(result.facts))
    assert len(lines) == 2 + len(result.facts.points)
    assert all("fail (" in line for line in lines[1:-1])


def test_decode__a_generator_of_words_is_refused_with_what_to_do(project):
    with pytest.raises(ConfigError, match="unclip"):
        decode_direction(project, ASKED)


@dataclass(frozen=True, kw_only=True)
class OtherSpace(NearestScene):
    """Says that it decodes another space, and embeds as it is told."""

    turn: object = None
    space_id = "another"

    def embed_texts(self, texts):
        return (
            super().embed_texts(texts)
            if self.turn is None
            else super().embed_texts(texts) @ self.turn
        )


def test_refuse_other_space__goes_by_embeddings_not_by_names():
    embedder = PlantedEmbedder()
    refuse_other_space(OtherSpace(), embedder)
    with pytest.raises(ConfigError, match="another space"):
        refuse_other_space(OtherSpace(turn=np.roll(np.eye(64), 1, axis=1)), embedder)


def test_refuse_other_space__other_lengths_are_named():
    class Longer(NearestScene):
        dimension = 77

    with pytest.raises(ConfigError, match=r"length 77.*64"):
        refuse_other_space(Longer(), PlantedEmbedder())


@pytest.mark.parametrize(
    "asked", [DecodeRequest(alphas=()), DecodeRequest(alphas=(1.2,)), DecodeRequest(n_each=0)]
)
def test_decode__refuses_requests_that_mean_nothing(project, asked):
    with pytest.raises(ConfigError, match="nothing to decode"):
        decode_direction(project, asked, generator=NearestScene())


def test_chosen_slice__by_id_by_its_beginning_or_the_first(project):
    record = project.run_record()
    first = chosen_slice(record, "")
    assert first.method == "directions"
    assert chosen_slice(record, first.slice_id[:6]) == first
    with pytest.raises(ConfigError, match=first.slice_id):
        chosen_slice(record, "zzz")
    column = first.model_copy(update={"rule": ColumnRule(column="colour", values=("green",))})
    with pytest.raises(NotEnoughDataError, match="discover"):
        chosen_slice(record.model_copy(update={"slices": (column,), "evidence": ()}), "")
    with pytest.raises(ConfigError, match="Only slices"):
        normal_in_space(column.rule)


def test_normal_in_space__is_the_direction_in_which_the_score_grows_fastest():
    random = np.random.default_rng(0)
    direction, centre, scale = (
        random.normal(size=5),
        random.normal(size=5),
        random.uniform(0.5, 2, size=5),
    )
    rule = LinearRule(
        encoder_id="e",
        direction=tuple(direction),
        centre=tuple(centre),
        scale=tuple(scale),
        offset=0.3,
        normalise=False,
    )
    points = np.vstack([np.zeros(5), np.eye(5)]).astype(np.float32)
    found = rule.scaled(points) @ direction
    assert np.allclose(normal_in_space(rule), found[1:] - found[0], atol=1e-5)
    assert np.allclose(normal_in_space(rule.model_copy(update={"scale": None})), direction)


def test_one_embedding__is_known_by_its_embedding():
    first, second = PlantedEmbedder().embed_texts(["a disc", "a star"])
    made = [
        OneEmbedding(decoder=NearestScene(), embedding=embedding) for embedding in (first, second)
    ]
    assert made[0].generator_id != made[1].generator_id
    generated = made[0].generate(["a photo of a disc"] * 2, seeds=[1, 2])
    assert [one.generator_id for one in generated] == [made[0].generator_id] * 2
