from weakspot.core.evidence import Interval, Share
from weakspot.generate.search.series import CaptionTrial, Contrast, StoppedBecause


def trial(**changes: object) -> CaptionTrial:
    rate = Share(count=6, total=8, value=0.75, interval=Interval(low=0.2, high=0.99))
    fields = {
        "caption": "at night.",
        "prompt": "a photo of a fly. at night.",
        "step": "cluster",
        "n_asked": 10,
        "rate": rate,
    }
    return CaptionTrial.model_validate({**fields, "stopped_because": "better", **changes})


def test_caption_trial__says_its_counts():
    found = trial(log10_e_value=3.0)
    assert (found.n_images, found.failures, found.e_value, found.can_be_generated) == (
        8,
        6,
        1000.0,
        True,
    )
    assert found.stopped_because is StoppedBecause.BETTER


def test_caption_trial__an_enormous_e_value_stays_a_number():
    assert trial(log10_e_value=5000.0).e_value == 1e300


def test_caption_trial__is_the_same_after_writing_and_reading():
    endless = Contrast(value=None, low=4.0, high=None)
    found = trial(ratio=endless, wrong_labels={"bee": 5, "wasp": 1}, rejected={"blank": 2})
    assert CaptionTrial.model_validate_json(found.model_dump_json()) == found


def test_caption_trial__without_images_is_not_drawable():
    empty = trial(rate=Share.of(0, 0), stopped_because="refused", note="It cannot generate snow.")
    assert not empty.can_be_generated
    assert empty.note
