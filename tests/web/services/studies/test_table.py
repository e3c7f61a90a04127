import csv
import io

import pytest

from weakspot.web.services.studies import (
    RepairFigures,
    StudyTableRow,
    best_triples,
    study_table,
    table_csv,
)


def _entry(person_id: str, phrase: str, score: float | None, **more: object) -> StudyTableRow:
    fields = {
        "class_title": "disc",
        "phrase": phrase,
        "threshold": None,
        "score": score,
        "held_out_score": score,
        "seconds": 30.0,
        "created": "2026-01-01T00:00:00+00:00",
        "person_id": person_id,
        "person": "Ada",
        "is_accepted": False,
    }
    return StudyTableRow(**{**fields, **more})


def test_table__nothing_said__is_empty_with_a_summary():
    table = study_table([], {}, {})
    assert (table.rows, table.summary.n_people) == ([], 0)
    assert (table.summary.best_score.mean, table.summary.best_score.sd) == (None, None)


def test_table__two_people_of_one_name__are_told_apart():
    table = study_table(
        [_entry("a", "green", 0.5), _entry("b", "red", 0.1), _entry("a", "blue", 0.2)], {}, {}
    )
    assert [row.person for row in table.rows] == ["Ada", "Ada (2)", "Ada"]


def test_summary__best_scores_and_minutes__mean_and_deviation_over_people_and_classes():
    entries = [
        _entry("a", "green", 0.5),
        _entry("a", "red", 0.1),
        _entry("b", "red", 0.7),
        _entry("b", "blue", None),
    ]
    summary = study_table(
        entries, {}, {("a", "disc"): 60.0, ("b", "disc"): 180.0, ("c", "disc"): 0.0}
    ).summary
    assert summary.best_score.mean == pytest.approx(0.6)
    assert summary.best_score.sd == pytest.approx(0.1414, abs=1e-4)
    assert (summary.minutes.mean, summary.minutes.n) == (2.0, 2)


def test_table__repaired_phrase__is_joined_by_class_words_and_threshold():
    entries = [_entry("a", "green", 0.5), _entry("a", "green", 0.4, threshold=0.3)]
    repairs = {("disc", "green", None): RepairFigures(worst_before=0.2, worst_after=0.9)}
    first, second = study_table(entries, repairs, {}).rows
    assert (first.worst_before, first.worst_after) == (0.2, 0.9)
    assert second.worst_after is None


def test_best_triples__accepted_goes_before_a_better_score__each_once():
    entries = [
        _entry("a", "green", 0.5, is_accepted=True),
        _entry("a", "red", 0.9),
        _entry("b", "green", 0.5),
    ]
    assert best_triples(entries) == [("disc", "green", None)]


def test_csv__texts_that_look_like_formulas__are_shown_and_numbers_stay_numbers():
    table = study_table([_entry("a", '=HYPERLINK("x")', -0.25, person="@me", fit="a\nb,c")], {}, {})
    [line] = csv.DictReader(io.StringIO(table_csv(table).decode("utf-8-sig")))
    assert (line["phrase"], line["person"], line["score"]) == ('\'=HYPERLINK("x")', "'@me", "-0.25")
    assert line["worst_after"] == ""
    assert line["fit"] == "a\nb,c"
    assert "person_id" not in line
