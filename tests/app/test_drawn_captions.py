from dataclasses import dataclass, field

import numpy as np
import pytest
from PIL import Image

from weakspot.app.drawn_captions import DrawnCaptions
from weakspot.core.errors import MissingExtraError, ModelError

PICTURES = {f"{number:032x}": Image.new("RGB", (8, 8), (number, 0, 0)) for number in range(20)}
KEYS = list(PICTURES)


@dataclass
class RedCaptioner:
    """Says how red a picture is; chokes on batches that hold an unlucky one."""

    unlucky: int = -1
    asked: list = field(default_factory=list)

    captioner_id = "red-1"

    def caption(self, pictures, *, about=None):
        reds = [picture.getpixel((0, 0))[0] for picture in pictures]
        self.asked += reds
        if self.unlucky in reds:
            raise RuntimeError("no")
        return [f" red {red}.\ud800" for red in reds]


class Completing(RedCaptioner):
    def complete(self, pictures, *, beginning):
        return [f"after {beginning!r}: {text}" for text in self.caption(pictures)]

    def log_likelihoods(self, pictures, captions):
        return np.array([[-float(picture.getpixel((0, 0))[0]) for _ in captions] for picture in pictures])


def captions_of(captioner, folder):
    return DrawnCaptions(captioner, PICTURES.__getitem__, folder)


def test_drawn_captions__every_picture_is_asked_about_once_also_by_another_session(tmp_path):
    captioner = RedCaptioner()
    first = captions_of(captioner, tmp_path).completions([KEYS[2], KEYS[0], KEYS[2]], beginning="a disc.")
    assert first == ["red 2.?", "red 0.?", "red 2.?"]
    assert captions_of(captioner, tmp_path).completions([KEYS[0], KEYS[3]], beginning="a disc.") == ["red 0.?", "red 3.?"]
    assert captioner.asked == [2, 0, 3]


def test_drawn_captions__one_unlucky_picture_has_no_caption_and_is_tried_again_later(tmp_path):
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
        def caption(self, pictures, *, about=None):
            self.asked.append(len(pictures))
            raise MissingExtraError("torch", extra="torch", purpose="Captioners")

    captioner = Missing()
    with pytest.raises(ModelError, match="torch"):
        captions_of(captioner, tmp_path).completions(KEYS, beginning="")
    assert len(captioner.asked) == 1


def test_drawn_captions__completions_know_their_beginning_and_are_kept_by_it(tmp_path):
    captions = captions_of(Completing(), tmp_path)
    one, other = (captions.completions(KEYS[:1], beginning=beginning)[0] for beginning in ("a disc.", "a star."))
    assert "a disc." in one
    assert "a star." in other


def test_drawn_captions__likelihoods_only_from_those_who_can_say(tmp_path):
    assert captions_of(RedCaptioner(), tmp_path).likelihoods(KEYS, ["red"]) is None
    found = captions_of(Completing(), tmp_path).likelihoods(KEYS[:12], ["red", "blue"])
    assert found.shape == (12, 2)
    assert found[:, 0].tolist() == [-float(number) for number in range(12)]
