from dataclasses import dataclass, field

import pytest

from weakspot.app.drawn_outcomes import DrawnOutcomes
from weakspot.app.drawn_series import DrawnSeries
from weakspot.app.preparation import EmbedSummary, Prepared
from weakspot.app.sampling import SamplerParts, StoredSampler
from weakspot.app.studio import Studio
from weakspot.core.assistants import NOBODY
from weakspot.core.errors import ModelError, RefusedPromptError
from weakspot.generate.gate import Gate
from weakspot.search.word_sentences import ASSEMBLED
from weakspot.store.drawings import Drawings
from weakspot.testing.fakes import PlantedCaptioner, PlantedEmbedder, PlantedImageGenerator, planted_classifier

BASELINE = "a realistic photograph of a disc."


@dataclass(frozen=True, kw_only=True)
class Colourless(PlantedImageGenerator):
    """Says that it can draw no green, and notes what it is asked."""

    checked: list = field(default_factory=list)

    def check_prompt(self, prompt):
        self.checked.append(prompt)
        if "green" in prompt:
            raise RefusedPromptError("There is no green.", fix="Say red.")


@pytest.fixture
def prepared(world):
    return Prepared(
        samples=world.samples(),
        assistants=NOBODY,
        embedder=PlantedEmbedder(),
        classifier=planted_classifier(world),
        summary=EmbedSummary(),
        inputs={},
    )


def sampler_of(prepared, folder, *, generator=None, captioner=None, has_text=True):
    drawer = generator or PlantedImageGenerator()
    series = DrawnSeries(outcomes=DrawnOutcomes(Studio(drawer, Drawings(folder), gate=Gate()), prepared, folder), seed=3)
    texts = PlantedEmbedder().embed_texts if has_text else None
    parts = SamplerParts(generator=drawer, captioner=captioner, embed_texts=texts)
    return StoredSampler(series, parts, class_name="disc", folder=folder)


def test_stored_sampler__the_same_place_is_always_the_same_picture(prepared, tmp_path):
    first = sampler_of(prepared, tmp_path / "1").draw(BASELINE, "disc", first=0, n=10)
    second = sampler_of(prepared, tmp_path / "2")
    parts = [second.draw(BASELINE, "disc", first=start, n=5) for start in (5, 0)]
    assert parts[1].keys + parts[0].keys == first.keys
    assert first.n_asked == 10
    assert first.probabilities.shape == (len(first.keys), 4)


def test_stored_sampler__other_prompts_have_other_pictures(prepared, tmp_path):
    sampler = sampler_of(prepared, tmp_path)
    one, other = (sampler.draw(f"{BASELINE}{added}", "disc", first=0, n=8) for added in ("", " "))
    assert not set(one.keys) & set(other.keys)


def test_stored_sampler__captions_come_from_the_captioner_or_from_words(prepared, tmp_path):
    asked = sampler_of(prepared, tmp_path, captioner=PlantedCaptioner())
    keys = asked.draw(BASELINE, "disc", first=0, n=6).keys
    assert asked.caption_source == PlantedCaptioner().captioner_id
    assert all("background is" in text for text in asked.completions(keys, beginning=BASELINE))
    assert asked.likelihoods(keys, ["it is red."]).shape == (len(keys), 1)
    words = sampler_of(prepared, tmp_path)
    words.draw(BASELINE, "disc", first=0, n=6)
    assert words.caption_source == ASSEMBLED
    assert any(words.completions(keys, beginning=BASELINE))
    assert words.likelihoods(keys, ["it is red."]) is None


def test_stored_sampler__sentences_that_cannot_be_drawn_are_left_out_and_checked_once(prepared, tmp_path):
    generator = Colourless()
    sampler = sampler_of(prepared, tmp_path, generator=generator, captioner=PlantedCaptioner())
    keys = sampler.draw("a photo of a green disc", "disc", first=0, n=4).keys
    texts = sampler.completions(keys, beginning=BASELINE)
    assert keys
    assert not any("green" in text for text in texts)
    assert all("background is" in text for text in texts)
    before = len(generator.checked)
    sampler.completions(keys, beginning=BASELINE)
    assert len(generator.checked) == before


def test_stored_sampler__without_captioner_and_text_side_nobody_can_say(prepared, tmp_path):
    sampler = sampler_of(prepared, tmp_path, has_text=False)
    keys = sampler.draw(BASELINE, "disc", first=0, n=2).keys
    with pytest.raises(ModelError, match="nobody"):
        sampler.completions(keys, beginning=BASELINE)
    with pytest.raises(ModelError, match="no text side"):
        sampler.embed_texts(["red"])
