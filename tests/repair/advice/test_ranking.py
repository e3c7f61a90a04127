from weakspot.core.evidence import Interval
from weakspot.core.run import Advice, AdviceKind
from weakspot.repair.advice.stage import in_order


def _advice(kind, subject="a", gain=None, low=None):
    interval = None if low is None else Interval(low=low, high=1.0)
    return Advice(kind=kind, subject=subject, sentence="do", gain=gain, gain_interval=interval)


def test_in_order__what_makes_everything_doubtful_first_and_what_only_remains_last():
    kinds = list(AdviceKind)
    found = in_order([_advice(kind, gain=0.5, low=0.1) for kind in reversed(kinds)], {"a": 10})
    assert [one.kind for one in found] == [
        AdviceKind.MEND_SETUP,
        AdviceKind.CHECK_LABELS,
        AdviceKind.RETRAIN,
        AdviceKind.LABEL,
        AdviceKind.COLLECT,
        AdviceKind.GENERATE,
        AdviceKind.ACCEPT,
    ]


def test_in_order__by_failures_that_will_be_resolved():
    small, large = (
        _advice(AdviceKind.LABEL, subject, gain=gain, low=0.1)
        for subject, gain in (("few", 0.9), ("many", 0.3))
    )
    assert in_order([small, large], {"few": 10, "many": 100}) == (large, small)


def test_in_order__what_may_not_help_comes_after_what_will():
    unsure = _advice(AdviceKind.LABEL, "many", gain=0.2, low=-0.1)
    unknown = _advice(AdviceKind.COLLECT, "more")
    sure = _advice(AdviceKind.LABEL, "few", gain=0.2, low=0.05)
    found = in_order([unsure, unknown, sure], {"few": 5, "many": 50, "more": 500})
    assert found == (sure, unsure, unknown)
