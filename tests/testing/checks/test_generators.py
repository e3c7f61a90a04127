from dataclasses import replace

from weakspot.testing.fakes import (
    PlantedImageGenerator,
    PlantedTextGenerator,
)


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
