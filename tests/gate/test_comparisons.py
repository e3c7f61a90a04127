from weakspot.gate.bars import new_slices
from weakspot.gate.figures import Figures, Sighting
from weakspot.gate.policy import NewSliceRule
from weakspot.gate.result import Ruling


def _sighting(name, **more):
    return Sighting(
        subject=name, slice_id=f"id-{name}", **{"p_value": 1e-6, "q_value": 1e-5, **more}
    )


def _new(sightings, rule=None, *, accepted=(), n_tested=10, correction="fdr"):
    figures = Figures(
        tallies=(),
        sightings=tuple(sightings),
        n_tested=n_tested,
        correction=correction,
        accepted=tuple(accepted),
    )
    found = new_slices(rule or NewSliceRule(max=0), figures)
    return {entry.subject: entry for entry in found}


def test_new_slices__what_the_baseline_has_is_known():
    found = _new(
        [
            _sighting("a", known_id="old", known_as="old one", overlap=0.8),
            _sighting("b", overlap=0.2),
        ]
    )
    assert (found["a"].verdict, found["b"].verdict) == (Ruling.KEPT, Ruling.VIOLATED)
    assert "as “old one” (overlap 0.80)" in found["a"].sentence
    assert "the nearest overlaps by 0.20" in found["b"].sentence


def test_new_slices__so_many_may_be_new_and_accepted_ones_do_not_count():
    two = [_sighting("a"), _sighting("b")]
    assert {entry.verdict for entry in _new(two, NewSliceRule(max=1)).values()} == {Ruling.VIOLATED}
    assert {entry.verdict for entry in _new(two, NewSliceRule(max=2)).values()} == {Ruling.KEPT}
    assert {
        entry.verdict for entry in _new(two, NewSliceRule(max=1), accepted=["id-a"]).values()
    } == {Ruling.KEPT}


def test_new_slices__one_that_is_certain_only_beside_known_ones_is_not_judged():
    doubtful = [_sighting("a", p_value=0.02, q_value=0.04)]
    assert _new(doubtful, n_tested=10)["a"].verdict is Ruling.NOT_JUDGED
    assert _new(doubtful, n_tested=2)["a"].verdict is Ruling.VIOLATED
    assert _new(doubtful, n_tested=10, correction="fwer")["a"].verdict is Ruling.VIOLATED


def test_new_slices__without_findings_nothing_is_new():
    assert _new([])["all slices"].verdict is Ruling.KEPT
