import numpy as np
import pytest

from weakspot.core.errors import RefusedPromptError
from weakspot.core.failures import FailureCriterion
from weakspot.generate.adversarial import (
    AdversarialEffort,
    SourceCaption,
    caption_from,
    collect,
    merged,
)
from weakspot.generate.search.series import SampledImages

NAMES = ("fly", "bee", "ant")
TOP = FailureCriterion()


class Series:
    """Every tenth image is rejected; of the others those fail that a prompt's rate says, evenly spread."""

    class_names = NAMES

    def __init__(self, rates, shared=()):
        self.rates = rates
        self.shared = shared
        self.requests = []

    def generate(self, prompt, class_name, *, first, n):
        if "wet" in prompt:
            raise RefusedPromptError("Nothing wet can be generated.", fix="Ask for something dry.")
        self.requests.append((prompt, first, n))
        places = [place for place in range(first, first + n) if place % 10]
        period = self.rates[prompt]
        fails = [bool(period) and place % period == 1 for place in places]
        name = "shared" if prompt in self.shared else prompt
        rows = np.array(
            [[0.1, 0.8, 0.1] if one else [0.8, 0.1, 0.1] for one in fails], dtype=np.float32
        ).reshape(-1, 3)
        keys = tuple(f"{name} {place}" for place in places)
        return SampledImages(
            keys=keys, probabilities=rows, n_asked=n, rejected={"black": n - len(places)}
        )


def _captions(*prompts):
    return [SourceCaption(class_name="fly", prompt=prompt, origins=("x",)) for prompt in prompts]


def test_collect__a_caption_stops_when_enough_fail():
    sampler = Series({"on a flower": 2, "plain": 50})
    effort = AdversarialEffort(most_per_caption=60, keep=6, step=20)
    often, seldom = collect(sampler, _captions("on a flower", "plain"), TOP, effort=effort)
    assert len(often.kept) == 6
    assert often.n_asked == 20
    assert often.predicted == ("bee",) * 6
    assert often.wrong_labels == {"bee": often.n_failed}
    assert (seldom.n_asked, seldom.n_failed, seldom.kept) == (60, 2, ("plain 1", "plain 51"))
    assert seldom.rejected == {"black": 6}
    assert [request for request in sampler.requests if request[0] == "plain"] == [
        ("plain", 0, 20),
        ("plain", 20, 20),
        ("plain", 40, 20),
    ]


def test_collect__the_share_counts_the_first_images_alone():
    (one,) = collect(
        Series({"p": 3}),
        _captions("p"),
        TOP,
        effort=AdversarialEffort(most_per_caption=50, keep=9, step=20),
    )
    assert one.n_asked > 20
    assert (one.first.count, one.first.total) == (6, 18)


def test_collect__the_last_step_is_cut_and_a_image_is_kept_once():
    sampler = Series({"a": 4, "b": 4}, shared=("a", "b"))
    effort = AdversarialEffort(most_per_caption=25, keep=3, step=20)
    first, second = collect(sampler, _captions("a", "b"), TOP, effort=effort)
    assert not set(first.kept) & set(second.kept)
    assert second.n_asked == 25
    assert sampler.requests[-1] == ("b", 20, 5)


def test_collect__a_refused_caption_is_noted():
    refused, fine = collect(
        Series({"dry": 2}), _captions("wet", "dry"), TOP, effort=AdversarialEffort(keep=2)
    )
    assert refused.refusal == "Nothing wet can be generated. Ask for something dry."
    assert refused.n_asked == 0
    assert len(fine.kept) == 2


def test_collect__nothing_can_be_drawn():
    with pytest.raises(RefusedPromptError, match="not one of the captions"):
        collect(Series({}), _captions("wet", "wet too"), TOP, effort=AdversarialEffort())


def test_caption_from__a_text_that_repeats_the_beginning():
    found = caption_from("fly", "a photo of a fly.", "A photo of a fly. It is dark.", origin="f")
    assert found.prompt == "a photo of a fly. it is dark."
    assert found.origins == ("f",)


@pytest.mark.parametrize("text", ["", "  ", "a photo of a fly.", "..."])
def test_caption_from__nothing_was_said(text):
    assert caption_from("fly", "a photo of a fly.", text, origin="f") is None


def test_merged__the_same_caption_is_drawn_once():
    captions = [
        caption_from("fly", "a fly.", text, origin=name)
        for name, text in [("a", "it is dark"), ("b", "dots."), ("c", "It is dark.")]
    ]
    other = caption_from("bee", "a fly.", "it is dark", origin="d")
    found = merged([*captions, other])
    assert [(one.class_name, one.origins) for one in found] == [
        ("fly", ("a", "c")),
        ("fly", ("b",)),
        ("bee", ("d",)),
    ]
