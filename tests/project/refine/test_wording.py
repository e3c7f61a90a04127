from weakspot.core.evidence import Share
from weakspot.project.refine.projects import headline, set_sentence
from weakspot.project.refine.training import RefinedArm, Refinement


def _arm(name, n_images, n_resolved, p=0.001, **changed):
    shares = dict.fromkeys(
        ("clean", "failure", "seed", "test_before", "test_after"), Share.of(9, 10)
    )
    shares |= {field: changed.pop(field) for field in ("clean", "failure") if field in changed}
    return RefinedArm(
        arm=name,
        note="",
        n_images=n_images,
        debug_weight=0.5,
        held_out=Share.of(n_resolved, 20),
        p_against_random=p if name == "refine" else None,
        **shares,
        **changed,
    )


def _headline(n_resolved, n_random_images=6, n_plain=0, **changed):
    arms = (
        _arm("refine", 6, n_resolved, **changed),
        _arm("random", n_random_images, 5),
        _arm("plain", 0, n_plain),
    )
    return headline(_refinement(*arms))


def _refinement(*arms):
    return Refinement(name="m", names=(), arms=arms, measured_on=())


def test_headline__a_refinement_that_is_not_better_begins_with_that():
    assert _headline(5).startswith(
        "Not better than images of the mere classes. Refinement resolves 5"
    )
    assert _headline(8, n_plain=8).startswith(
        "Not better than retraining without images. Refinement resolves 8"
    )
    assert _headline(8, p=0.2).startswith(
        "Better than images of the mere classes, but that may be chance. Refinement resolves 8"
    )
    assert _headline(8, n_plain=7).startswith("Refinement resolves 8 of 20 held-out failures")


def test_headline__a_refinement_that_does_not_help_begins_with_that():
    assert _headline(8, clean=Share.of(6, 10), failure=Share.of(4, 10)).startswith(
        "No help here: of the test samples it loses 4 right ones and resolves 4 failures. Refinement"
    )
    assert _headline(8, clean=Share.of(7, 10), failure=Share.of(4, 10)).startswith("Refinement")
    assert _headline(8, clean=Share.of(10, 10), failure=Share.of(0, 10)).startswith("Refinement")


def test_headline__a_layer_that_stays_as_it_is_is_no_help():
    said = _headline(0, share=0.0, clean=Share.of(10, 10), failure=Share.of(0, 10))
    assert said.startswith(
        "No help here: even a small step towards these images loses right samples, so the layer stays as it is. Refinement"
    )


def test_headline__as_many_is_said_only_of_as_many():
    assert "; as many images of the mere classes resolve 5 (25 %)" in _headline(8)
    assert "; 1 instead of 6 images of the mere classes resolve 5" in _headline(8, 1)


def test_set_sentence__says_how_far_the_layer_goes():
    part, whole = _refinement(_arm("refine", 6, 8, share=0.45)), _refinement(_arm("refine", 6, 8))
    assert set_sentence(part).endswith("(lambda); the layer goes 45 % of the way.")
    assert set_sentence(whole).endswith("as all training samples (lambda).")
