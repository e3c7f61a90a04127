from dataclasses import dataclass, field

import numpy as np
import pytest

import weakspot
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.samples import SampleSet
from weakspot.data.engine.local import LocalEngine
from weakspot.data.images import decode_image
from weakspot.data.locations import read_location
from weakspot.models.embedded.encoder import EmbeddedDefault
from weakspot.models.endpoint.text_models import (
    EndpointAnswerer,
    EndpointCaptioner,
    EndpointTextGenerator,
)
from weakspot.project.project import Project
from weakspot.run.assistants import (
    AssistantParts,
    assistant_parts,
    assistants_for,
    witness_ids,
    witness_notes,
)
from weakspot.run.settings import PartSettings, Settings
from weakspot.store.project import ProjectStore
from weakspot.testing.fakes import (
    PlantedAnswerer,
    PlantedCaptioner,
    PlantedEmbedder,
    PlantedTextGenerator,
    planted_classifier,
)
from weakspot.testing.planted import plant, rare
from weakspot.testing.scenes import read_marker

ENGINE = LocalEngine(n_workers=2, queue_depth=4)
SCHEMA = {
    "type": "object",
    "properties": {"attributes": {"type": "array", "items": {"type": "string"}}},
    "required": ["attributes"],
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    world = plant(rare(0.1), 40, seed=5)
    folder = tmp_path_factory.mktemp("planted")
    return world, world.write_images(folder)


@pytest.fixture
def store(store_of, planted):
    _, written = planted
    return store_of(written.manifest.parent)


def _samples(store):
    dataset = store.dataset()
    return SampleSet(dataset=dataset, rows=np.arange(len(dataset)))


def _assistants(store, *, settings=None, samples=None, embedder=None, told=None, parts=None):
    return assistants_for(
        settings=settings or weakspot.Settings(),
        folder=store.root,
        samples=_samples(store) if samples is None else samples,
        store=store,
        embedder=embedder,
        engine=ENGINE,
        progress_of=lambda stage: (
            lambda done, total: None if told is None else told.append((stage, done, total))
        ),
        parts=parts,
    )


@dataclass
class Counting:
    """A planted captioner, answerer and language model in one that counts what it is asked."""

    n_captions: int = 0
    n_answers: int = 0
    n_prompts: int = 0
    captioner_id: str = "counting@1"
    answerer_id: str = "counting@1"
    generator_id: str = "counting@1"
    sides: list = field(default_factory=list)

    def caption(self, images, *, about=None):
        self.n_captions += len(images)
        return PlantedCaptioner().caption(images, about=about)

    def answer(self, images, question):
        self.n_answers += len(images)
        return PlantedAnswerer().answer(images, question)

    def generate(self, prompt, *, schema=None, seed=0):
        self.n_prompts += 1
        return PlantedTextGenerator().generate(prompt, schema=schema, seed=seed)


def _scenes(store):
    return [
        read_marker(decode_image(read_location(place)).image)
        for place in store.dataset().locations()
    ]


def test_assistants_for__nobody_is_configured(store):
    samples, found = _assistants(store)
    asked = (found.embed_texts, found.captions, found.answers, found.propose, found.second)
    assert asked == (None,) * 5
    assert set(samples.spaces) == set()


def test_assistants_for__planted_models_say_what_is_there_and_are_asked_once(store):
    part = Counting()
    told = []
    parts = AssistantParts(captioner=part, answerer=part, language=part)
    _, found = _assistants(store, parts=parts, told=told)
    scenes, rows = _scenes(store), np.arange(40)
    assert found.captions(rows) == [scene.caption for scene in scenes]
    assert found.answers(rows[:10], "What colour is the object?") == [
        scene.colour for scene in scenes[:10]
    ]
    assert found.answers(rows[:10], "How is the lighting?") == [
        scene.lighting for scene in scenes[:10]
    ]
    assert found.propose("Name attributes of a disc.", SCHEMA)["attributes"]
    assert {(stage, total) for stage, _, total in told} == {("caption", 40), ("ask", 10)}
    assert (part.n_captions, part.n_answers, part.n_prompts) == (40, 20, 1)


def test_assistants_for__second_run_asks_nothing(store):
    rows = np.arange(40)
    first, second = Counting(), Counting()
    answers = []
    for part in (first, second):
        _, found = _assistants(
            ProjectStore.open(store.root),
            parts=AssistantParts(captioner=part, answerer=part, language=part),
        )
        said = (
            found.captions(rows),
            found.answers(rows, "What colour is it?"),
            found.propose("Name attributes.", SCHEMA),
        )
        answers.append(said)
    assert answers[0] == answers[1]
    assert (first.n_captions, first.n_answers, first.n_prompts) == (40, 40, 1)
    assert (second.n_captions, second.n_answers, second.n_prompts) == (0, 0, 0)


def test_assistants_for__settings_name_the_models(store):
    settings = weakspot.Settings(
        captioner={"name": "planted"},
        answerer={"name": "planted"},
        language={"name": "planted"},
        second_embedder={"name": "planted"},
    )
    samples, found = _assistants(store, settings=settings)
    assert found.captions(np.array([3])) == [_scenes(store)[3].caption]
    assert samples.space("second").embeddings.shape == (40, 64)
    space, embed_texts = found.second
    assert space == "second"
    np.testing.assert_allclose(embed_texts(["red"]), PlantedEmbedder().embed_texts(["red"]))


def test_assistants_for__second_encoder_must_be_another_one_with_text(store):
    class Mute(PlantedEmbedder):
        has_text = False

    with pytest.raises(ConfigError, match="no independent witness"):
        _assistants(
            store, embedder=PlantedEmbedder(), parts=AssistantParts(second=PlantedEmbedder())
        )
    with pytest.raises(ConfigError, match="no text side"):
        _assistants(store, parts=AssistantParts(second=Mute()))
    samples, _ = _assistants(
        store,
        embedder=PlantedEmbedder(),
        parts=AssistantParts(second=PlantedEmbedder(noise_scale=0.2)),
    )
    assert samples.space("second").encoder_id.endswith("noise-0.2")


def test_assistants_for__captions_of_a_column_are_not_mixed_with_a_model(store):
    samples = _samples(store)
    column = [f" caption {row} " if row % 2 else None for row in range(40)]
    with_column = SampleSet(
        dataset=samples.dataset.with_metadata({"caption": column}), rows=samples.rows
    )
    part = Counting()
    _, found = _assistants(store, samples=with_column, parts=AssistantParts(captioner=part))
    assert found.captions(np.array([1, 2, 3])) == ["caption 1", "", "caption 3"]
    assert part.n_captions == 0


def test_assistants_for__column_of_numbers_holds_no_captions(store):
    samples = _samples(store)
    numbers = SampleSet(
        dataset=samples.dataset.with_metadata({"caption": list(range(40))}), rows=samples.rows
    )
    assert _assistants(store, samples=numbers)[1].captions is None


def test_assistants_for__no_images_nobody_to_ask_about_them(store):
    samples = SampleSet(
        dataset=dataset_from_columns(class_names=["a"], labels=[0, 0]), rows=np.arange(2)
    )
    part = Counting()
    parts = AssistantParts(captioner=part, answerer=part, language=part, second=PlantedEmbedder())
    described, found = _assistants(store, samples=samples, parts=parts)
    assert (found.captions, found.answers, found.second) == (None, None, None)
    assert "second" not in described.spaces
    assert found.propose("Name attributes.", SCHEMA)


def test_assistants_for__witnesses_stand_beside_encoders_that_learnt_their_words(store):
    told = []
    _, planted = _assistants(store, embedder=PlantedEmbedder())
    _, learnt = _assistants(store, embedder=EmbeddedDefault(), told=told, parts=AssistantParts())

    assert planted.seen is None
    assert witness_ids(planted) == {}
    assert sorted(witness_ids(learnt)) == [
        "witness masks",
        "witness objects",
        "witness properties",
        "witness scenes",
        "witness text",
    ]
    found = learnt.seen(np.arange(3), "dark")
    assert found.shape == (3,)
    assert ("witnesses", 3, 3) in told
    assert witness_notes(learnt) == ()


def test_assistants_for__captions_of_witnesses_where_all_images_may_be_looked_at(store):
    kinds = {"kinds": ["properties"]}
    _, asked = _assistants(
        store, embedder=EmbeddedDefault(), settings=_witnessed(on="asked", **kinds)
    )
    _, every = _assistants(store, settings=_witnessed(on="all", **kinds))
    _, told = _assistants(
        store, settings=_witnessed(on="all", **kinds), parts=AssistantParts(captioner=Counting())
    )

    assert asked.captions is None
    rows = np.arange(2)
    assert all("photo" in caption for caption in every.captions(rows))
    assert told.captions(rows) == PlantedCaptioner().caption(
        [decode_image(read_location(place)).image for place in store.dataset().locations()[:2]]
    )


def _witnessed(**given):
    return Settings.model_validate({"witnesses": given})


def test_assistants_for__endpoints_that_are_down_are_model_errors(store):
    nobody = {"url": "http://127.0.0.1:9/v1", "model": "tiny", "n_retries": 0}
    parts = AssistantParts(
        captioner=EndpointCaptioner(**nobody),
        answerer=EndpointAnswerer(**nobody),
        language=EndpointTextGenerator(**nobody),
    )
    _, found = _assistants(store, parts=parts)
    for _ in range(2):
        with pytest.raises(ModelError, match=r"The captioner cannot be used.*127\.0\.0\.1:9"):
            found.captions(np.arange(40))
        with pytest.raises(ModelError, match="The question answerer cannot be used"):
            found.answers(np.arange(40), "What colour is it?")
        with pytest.raises(ModelError, match="The language model cannot be used"):
            found.propose("Name attributes.", SCHEMA)


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ("captioner", "blipp"),
        ("answerer", "nobody"),
        ("language", "gpt"),
        ("second_embedder", "clipp"),
    ],
)
def test_assistant_parts__unknown_name_is_refused_at_once(tmp_path, section, name):
    with pytest.raises(ConfigError, match=name):
        assistant_parts(weakspot.Settings(**{section: {"name": name}}), tmp_path)


def test_assistant_parts__unknown_option_is_refused_at_once(tmp_path):
    settings = weakspot.Settings(captioner={"name": "planted", "options": {"speed": 3}})
    with pytest.raises(
        ConfigError, match=r"speed: there is no such option(.|\n)*\[captioner\] options"
    ):
        assistant_parts(settings, tmp_path)


def test_project__unknown_captioner_is_noticed_before_anything_is_embedded(tmp_path, planted):
    world, written = planted

    class Slow(PlantedEmbedder):
        def embed_prepared(self, prepared):
            raise UnavailableError("hours of work")

    project = Project.create(
        tmp_path,
        data=str(written.manifest),
        classifier=planted_classifier(world),
        embedder=Slow(),
        settings=weakspot.Settings(captioner={"name": "blipp"}),
    )
    project.ingest()
    with pytest.raises(ConfigError, match="blipp"):
        project.samples()


def test_ids__one_that_cannot_be_had_is_left_out(tmp_path):
    settings = Settings(
        captioner=PartSettings(name="planted"),
        language=PartSettings(name="transformers", options={"model": str(tmp_path / "nowhere")}),
    )
    assert assistant_parts(settings, tmp_path).ids() == {"captioner": "planted-captioner-1"}
    assert AssistantParts().ids() == {}
