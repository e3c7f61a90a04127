from weakspot.core.evidence import Share
from weakspot.lab.refine.records import RefinedArm, Refinement
from weakspot.lab.refine.wording import headline


def _arm(name, n_images, n_resolved):
    shares = dict.fromkeys(
        ("clean", "failure", "seed", "test_before", "test_after"), Share.of(9, 10)
    )
    return RefinedArm(
        arm=name,
        note="",
        n_images=n_images,
        debug_weight=0.5,
        held_out=Share.of(n_resolved, 20),
        p_against_random=None if name == "random" else 0.5,
        **shares,
    )


def _headline(n_resolved, n_random_images=6):
    arms = (_arm("refine", 6, n_resolved), _arm("random", n_random_images, 5))
    return headline(Refinement(name="m", names=(), arms=arms, measured_on=()))


def test_headline__a_refinement_that_is_not_better_begins_with_that():
    assert _headline(5).startswith(
        "Not better than images of the mere classes. Refinement resolves 5"
    )
    assert _headline(8).startswith("Refinement resolves 8 of 20 held-out failures")


def test_headline__as_many_is_said_only_of_as_many():
    assert "; as many images of the mere classes resolve 5 (25 %)" in _headline(8)
    assert "; 1 instead of 6 images of the mere classes resolve 5" in _headline(8, 1)
