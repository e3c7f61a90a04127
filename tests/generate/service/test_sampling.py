from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from PIL import Image

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.errors import MissingExtraError, ModelError, RefusedPromptError
from weakspot.generate.project_generator import GeneratedPredictions
from weakspot.generate.quality import QualityCheck
from weakspot.generate.sampling import (
    GeneratedCaptions,
    StoredSampler,
)
from weakspot.generate.search.sentences import ASSEMBLED
from weakspot.generate.service import GeneratorService
from weakspot.run.preparation import EmbedResult, Prepared
from weakspot.store.generated_images import GeneratedImageStore
from weakspot.testing.fakes import (
    PlantedCaptioner,
    PlantedEmbedder,
    PlantedImageGenerator,
    planted_classifier,
)

IMAGES = {f"{number:032x}": Image.new("RGB", (8, 8), (number, 0, 0)) for number in range(20)}
KEYS = list(IMAGES)


@dataclass
class RedCaptioner:
    """Says how red an image is; chokes on batches that hold an unlucky one."""

    unlucky: int = -1
    asked: list = field(default_factory=list)

    captioner_id = "red-1"

    def caption(self, images, *, about=None):
        reds = [image.getpixel((0, 0))[0] for image in images]
        self.asked += reds
        if self.unlucky in reds:
            raise RuntimeError("no")
        return [f" red {red}.\ud800" for red in reds]


class Completing(RedCaptioner):
    def complete(self, images, *, beginning):
        return [f"after {beginning!r}: {text}" for text in self.caption(images)]

    def log_likelihoods(self, images, captions):
        return np.array([[-float(image.getpixel((0, 0))[0]) for _ in captions] for image in images])


def captions_of(captioner, folder):
    return GeneratedCaptions(captioner, IMAGES.__getitem__, folder)


def test_drawn_captions__every_image_is_asked_about_once_also_by_another_session(tmp_path):
    captioner = RedCaptioner()
    first = captions_of(captioner, tmp_path).completions(
        [KEYS[2], KEYS[0], KEYS[2]], beginning="a disc."
    )
    assert first == ["red 2.?", "red 0.?", "red 2.?"]
    assert captions_of(captioner, tmp_path).completions(
        [KEYS[0], KEYS[3]], beginning="a disc."
    ) == ["red 0.?", "red 3.?"]
    assert captioner.asked == [2, 0, 3]


def test_drawn_captions__one_unlucky_image_has_no_caption_and_is_tried_again_later(tmp_path):
    captioner = RedCaptioner(unlucky=5)
    found = captions_of(captioner, tmp_path).completions(KEYS, beginning="")
    assert [key for key, text in zip(KEYS, found, strict=True) if not text] == [KEYS[5]]
    captioner.unlucky = -1
    assert captions_of(captioner, tmp_path).completions(KEYS[5:6], beginning="") == ["red 5.?"]


def test_drawn_captions__a_captioner_that_never_answers_is_an_error(tmp_path):
    with pytest.raises(ModelError, match="captioner failed"):
        captions_of(RedCaptioner(unlucky=7), tmp_path).completions(KEYS[7:8], beginning="")


def test_drawn_captions__a_missing_library_is_not_asked_for_again_and_again(tmp_path):
    class Missing(RedCaptioner):
        def caption(self, images, *, about=None):
            self.asked.append(len(images))
            raise MissingExtraError("torch", extra="torch", purpose="Captioners")

    captioner = Missing()
    with pytest.raises(ModelError, match="torch"):
        captions_of(captioner, tmp_path).completions(KEYS, beginning="")
    assert len(captioner.asked) == 1


def test_drawn_captions__completions_know_their_beginning_and_are_kept_by_it(tmp_path):
    captions = captions_of(Completing(), tmp_path)
    one, other = (
        captions.completions(KEYS[:1], beginning=beginning)[0]
        for beginning in ("a disc.", "a star.")
    )
    assert "a disc." in one
    assert "a star." in other


def test_drawn_captions__likelihoods_only_from_those_who_can_say(tmp_path):
    assert captions_of(RedCaptioner(), tmp_path).likelihoods(KEYS, ["red"]) is None
    found = captions_of(Completing(), tmp_path).likelihoods(KEYS[:12], ["red", "blue"])
    assert found.shape == (12, 2)
    assert found[:, 0].tolist() == [-float(number) for number in range(12)]


BASELINE = "a realistic photograph of a disc."


@dataclass(frozen=True, kw_only=True)
class Colourless(PlantedImageGenerator):
    """Says that it can generate no green, and notes what it is asked."""

    checked: list = field(default_factory=list)

    def check_prompt(self, prompt):
        self.checked.append(prompt)
        if "green" in prompt:
            raise RefusedPromptError("There is no green.", fix="Say red.")


@pytest.fixture
def prepared(world):
    return Prepared(
        samples=world.samples(),
        assistants=NO_ASSISTANTS,
        embedder=PlantedEmbedder(),
        classifier=planted_classifier(world),
        summary=EmbedResult(),
        inputs={},
    )


def sampler_of(prepared, folder, *, generator=None, captioner=None, has_text=True, least_parents=1):
    image_generator = generator or PlantedImageGenerator()
    return StoredSampler(
        predictions=GeneratedPredictions(
            GeneratorService(image_generator, GeneratedImageStore(folder), quality=QualityCheck()),
            prepared,
            folder,
        ),
        seed=3,
        image_generator=image_generator,
        least_parents=least_parents,
        captioner=captioner,
        embed_texts_by=PlantedEmbedder().embed_texts if has_text else None,
        class_name="disc",
        folder=folder,
    )


def test_stored_sampler__the_same_place_is_always_the_same_image(prepared, tmp_path):
    first = sampler_of(prepared, tmp_path / "1").generate(BASELINE, "disc", first=0, n=10)
    second = sampler_of(prepared, tmp_path / "2")
    parts = [second.generate(BASELINE, "disc", first=start, n=5) for start in (5, 0)]
    assert parts[1].keys + parts[0].keys == first.keys
    assert first.n_asked == 10
    assert first.probabilities.shape == (len(first.keys), 4)


def test_stored_sampler__captions_come_from_the_captioner_or_from_words(prepared, tmp_path):
    asked = sampler_of(prepared, tmp_path, captioner=PlantedCaptioner())
    keys = asked.generate(BASELINE, "disc", first=0, n=6).keys
    assert asked.caption_source == PlantedCaptioner().captioner_id
    assert all("background is" in text for text in asked.completions(keys, beginning=BASELINE))
    assert asked.likelihoods(keys, ["it is red."]).shape == (len(keys), 1)
    words = sampler_of(prepared, tmp_path)
    words.generate(BASELINE, "disc", first=0, n=6)
    assert words.caption_source == ASSEMBLED
    assert any(words.completions(keys, beginning=BASELINE))
    assert words.likelihoods(keys, ["it is red."]) is None


def test_stored_sampler__sentences_that_cannot_be_drawn_are_left_out_and_checked_once(
    prepared, tmp_path
):
    generator = Colourless()
    sampler = sampler_of(prepared, tmp_path, generator=generator, captioner=PlantedCaptioner())
    keys = sampler.generate("a photo of a green disc", "disc", first=0, n=4).keys
    texts = sampler.completions(keys, beginning=BASELINE)
    assert keys
    assert not any("green" in text for text in texts)
    assert all("background is" in text for text in texts)
    before = len(generator.checked)
    sampler.completions(keys, beginning=BASELINE)
    assert len(generator.checked) == before


def test_stored_sampler__without_captioner_and_text_side_nobody_can_say(prepared, tmp_path):
    sampler = sampler_of(prepared, tmp_path, has_text=False)
    keys = sampler.generate(BASELINE, "disc", first=0, n=2).keys
    with pytest.raises(ModelError, match="nobody"):
        sampler.completions(keys, beginning=BASELINE)
    with pytest.raises(ModelError, match="no text side"):
        sampler.embed_texts(["red"])


@dataclass(frozen=True, kw_only=True)
class TwelveObjects(PlantedImageGenerator):
    """Shows one of twelve objects of the user's own, each in as many views as are wanted."""

    def parents_of(self, prompt, seed):
        return (f"object {seed % 2**32 % 12}",)

    def seed_of_view(self, seed, number):
        return seed % 2**32 + number * 2**32

    def control_for(self, prompt):
        return "in its own colour" if "green" in prompt else ""

    def generate(self, prompts, *, seeds):
        found = super().generate(prompts, seeds=seeds)
        return [replace(one, parents=self.parents_of(one.prompt, one.seed)) for one in found]


def test_generated_series__shows_every_object_before_one_comes_again(prepared, tmp_path):
    sampler = sampler_of(prepared, tmp_path, generator=TwelveObjects(), least_parents=10)
    found = sampler.generate(BASELINE, "disc", first=0, n=40)
    assert len(set(found.parents[:12])) == 12
    assert len(found.keys) == 40
    rest = sampler.generate(BASELINE, "disc", first=40, n=40)
    assert rest.n_asked == 20
    assert not set(found.keys) & set(rest.keys)
    assert sampler.generate(BASELINE, "disc", first=60, n=8).n_asked == 0
    assert sampler.control_for("a green disc") == "in its own colour"
