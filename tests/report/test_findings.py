from weakspot.report.findings import (
    methods_of,
    n_tested,
    unconfirmed_slices,
)


def test_unconfirmed_slices__tests_first_and_reasons_in_words(full_record):
    items = unconfirmed_slices(full_record)
    assert [item.was_tested for item in items] == [True, False, False]
    assert {item.verdict for item in items[1:]} == {
        "not counted, has nearly the same members as: apple: green",
        "cannot be tested: it is defined by what the classifier said",
    }


def test_methods_of__turns_are_added_up(full_record):
    directions, attributes = methods_of(full_record)
    assert directions.n_considered == 7
    assert (
        attributes.n_considered,
        attributes.n_found,
        attributes.n_tested,
        attributes.seconds,
    ) == (2_000, 50, 1, 3.0)
    assert attributes.note == "No answerer."


def test_n_tested__over_turns(record):
    other = record.evidence[0].measured_on.model_copy(update={"digest": "other half"})
    swapped = record.evidence[0].model_copy(update={"measured_on": other, "n_tested": 5})
    assert n_tested(record.model_copy(update={"evidence": (*record.evidence, swapped)})) == 7
