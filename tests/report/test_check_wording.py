from tests.heron_record import heron_record

from weakspot.report.check_wording import checks_sentence


def test_checks_sentence__what_was_looked_at_and_what_to_know():
    assert checks_sentence(heron_record().checks) == (
        "no sign of trouble: class order; 3 files set aside"
    )
    assert checks_sentence(()) == ""
