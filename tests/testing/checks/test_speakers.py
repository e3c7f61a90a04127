from dataclasses import replace

import numpy as np
import pytest

from weakspot.testing.checks import checks_for
from weakspot.testing.fakes import (
    PlantedCaptioner,
    PlantedImageGenerator,
    PlantedTextGenerator,
)


class Numbering(PlantedCaptioner):
    def caption(self, images, *, about=None):
        return [
            f"{number} {text}" for number, text in enumerate(super().caption(images, about=about))
        ]


def test_check_captioner__broken_in_one_way(rejected):
    assert "One image at a time" in rejected("captioners", "batches_do_not_matter", Numbering)


class OnlyCaptions:
    """A captioner that neither completes nor scores."""

    captioner_id = "only-captions"

    def caption(self, images, *, about=None):
        return PlantedCaptioner().caption(images, about=about)


class Rambling(PlantedCaptioner):
    def complete(self, images, *, beginning):
        return [f"{beginning} {text}" for text in super().complete(images, beginning=beginning)]


class Listing(PlantedCaptioner):
    def complete(self, images, *, beginning):
        return [text.replace(". ", ".\n") for text in super().complete(images, beginning=beginning)]


class Silent(PlantedCaptioner):
    def complete(self, images, *, beginning):
        return [""] * len(images)


class Verbose(PlantedCaptioner):
    def complete(self, images, *, beginning):
        return [f"{text} {text}" for text in super().complete(images, beginning=beginning)]


class Counting(PlantedCaptioner):
    def complete(self, images, *, beginning):
        return [f"it is {number}." for number in range(len(images))]


class Certain(PlantedCaptioner):
    def log_likelihoods(self, images, captions):
        return super().log_likelihoods(images, captions) + 30


class Padded(PlantedCaptioner):
    def log_likelihoods(self, images, captions):
        longest = max((len(caption) for caption in captions), default=0)
        return super().log_likelihoods(images, captions) - longest


class Sideways(PlantedCaptioner):
    def log_likelihoods(self, images, captions):
        return super().log_likelihoods(images, captions).T


class Undefined(PlantedCaptioner):
    def log_likelihoods(self, images, captions):
        return np.full((len(images), len(captions)), np.nan)


@pytest.mark.parametrize(
    ("broken", "check", "said"),
    [
        (Rambling, "completions_are_short_sentences", "repeats the beginning"),
        (Listing, "completions_are_short_sentences", "line breaks"),
        (Silent, "completions_are_short_sentences", "No completion has words"),
        (Verbose, "completions_are_short_sentences", "more than 7 sentences"),
        (Counting, "completions_keep_the_contract_of_captions", "One image at a time"),
        (Certain, "likelihoods_are_log_probabilities", "not the logarithm"),
        (Undefined, "likelihoods_are_log_probabilities", "not the logarithm"),
        (Padded, "likelihoods_are_log_probabilities", "One image and caption at a time"),
        (Sideways, "likelihoods_of_nothing", "no images"),
    ],
)
def test_check_captioner__further_abilities_broken_in_one_way(rejected, broken, check, said):
    assert said in rejected("captioners", check, broken)


@pytest.mark.parametrize("captioner", [OnlyCaptions, PlantedCaptioner])
def test_check_captioner__further_abilities_are_only_asked_of_those_who_have_them(captioner):
    checks = checks_for("captioners")
    for name in checks:
        if name.startswith(("completions", "likelihoods")):
            checks[name](captioner)


class Chatty(PlantedTextGenerator):
    def generate(self, prompt, *, schema=None, seed=0):
        return f"Sure! {super().generate(prompt, schema=schema, seed=seed)}"


class Forgetful(PlantedImageGenerator):
    def generate(self, prompts, *, seeds):
        return [replace(item, prompt="") for item in super().generate(prompts, seeds=seeds)]


class Zipping(PlantedImageGenerator):
    def generate(self, prompts, *, seeds):
        pairs = list(zip(prompts, seeds, strict=False))
        return super().generate([prompt for prompt, _ in pairs], seeds=[seed for _, seed in pairs])


def test_check_text_generator__broken_in_one_way(rejected):
    assert "not JSON" in rejected("text_generators", "text_fits_the_schema", Chatty)


def test_check_image_generator__broken_in_one_way(rejected):
    assert "one image a prompt" in rejected(
        "image_generators", "images_know_where_they_come_from", Forgetful
    )
    assert "went through" in rejected("image_generators", "prompts_need_seeds", Zipping)
