from weakspot.core.run import CheckState, PreflightCheck
from weakspot.report.wording import checks_sentence


def _check(name, state, short=""):
    return PreflightCheck(check=name, state=state, sentence="It is so.", short=short)


def test_checks_sentence__all_is_well():
    names = ("class order", "preprocessing", "leaks", "class names")
    assert checks_sentence([_check(name, CheckState.OK) for name in names]) == (
        "no sign of wrong class order, preprocessing, leaks"
    )
    assert (
        checks_sentence([_check("preprocessing", CheckState.OK)])
        == "no sign of wrong preprocessing"
    )


def test_checks_sentence__problems_come_first_and_notices_last():
    checks = [
        _check("files", CheckState.NOTICE, "3 files set aside"),
        _check("leaks", CheckState.OK),
        _check("class order", CheckState.PROBLEM, "class names in the wrong order"),
    ]
    assert checks_sentence(checks) == (
        "PROBLEM: class names in the wrong order; no sign of leaks; 3 files set aside"
    )


def test_checks_sentence__nothing_was_looked_at():
    assert checks_sentence([]) == ""
    assert checks_sentence([_check("class names", CheckState.OK)]) == "nothing stands out"
