import pytest
from tests.build import class_finding, evidence_of, heron_record, heron_slice

from weakspot.core.evidence import ClassFindingKind, Share, Verdict
from weakspot.core.run import CheckState, ClassifierFacts, PreflightCheck
from weakspot.report.first_answer import MAX_CLASSES, MAX_FINDINGS, first_answer, first_findings


@pytest.fixture
def birds():
    return heron_record()


def _changed(birds, **facts):
    return birds.model_copy(update={"classifier": birds.classifier.model_copy(update=facts)})


@pytest.mark.parametrize(
    ("settings", "facts", "headline"),
    [
        ({}, {"training": None}, "The classifier: 66 % right on 208 images (59-72 %)"),
        (
            {"classifier": {"options": {"model": "org/net"}}, "failure": {"kind": "top-k"}},
            {"training": (8, 2), "counted": "samples"},
            "org/net: 66 % without failure on 208 samples (59-72 %); training 75 %",
        ),
        ({}, {"n_samples": 0}, "The classifier: how often it is right was not measured"),
    ],
)
def test_first_answer__headline_of_other_runs(birds, settings, facts, headline):
    changed = _changed(birds, **facts).model_copy(update={"settings": settings})
    assert first_answer(changed).headline == headline


def test_first_answer__interval_counts_groups_not_images(birds):
    grouped = first_answer(_changed(birds, effective=20.0)).headline
    right = Share.of(137, 208, effective=20.0).interval
    assert f"({100 * right.low:.0f}-{100 * right.high:.0f} %)" in grouped
    assert grouped != first_answer(birds).headline


def test_first_answer__failing_classes_first_then_worst(birds):
    rows = first_answer(birds).classes
    assert [(row.name, row.is_failing) for row in rows] == [
        ("heron", True),
        ("gull", False),
        ("owl", False),
        ("crane", False),
    ]
    assert [(one.name, one.number) for one in rows[0].taken_for] == [("crane", 44), ("gull", 4)]
    assert (rows[0].right.count, rows[0].right.total) == (4, 52)


def test_first_answer__of_many_classes_those_that_certainly_do_worst(birds):
    many = {f"class {number}": (100, number % 7) for number in range(300)}
    facts = ClassifierFacts(
        n_samples=30_010, n_failed=960, per_class={**many, "tiny": (2, 2), "bad": (50, 45)}
    )
    answer = first_answer(birds.model_copy(update={"classifier": facts, "class_findings": ()}))
    assert (len(answer.classes), answer.n_classes) == (MAX_CLASSES, 302)
    assert [row.name for row in answer.classes[:2]] == ["bad", "tiny"]


def test_first_answer__a_class_that_only_looks_unlike_training_is_not_marked(birds):
    shift = class_finding(ClassFindingKind.SHIFT, "owl", "owls look unlike training")
    answer = first_answer(birds.model_copy(update={"class_findings": (shift,)}))
    assert not any(row.is_failing for row in answer.classes)
    assert answer.findings[0].text == "owls look unlike training"


def test_first_answer__shift_stands_behind_the_failure_of_its_class(birds):
    assert [one.text for one in first_answer(birds).findings] == [
        "heron fails as a whole; looks unlike training",
        "gull: at night - 75 % of 12 wrong, 8 % of the rest; rare in training",
    ]


def test_first_answer__what_is_not_confirmed_is_no_finding(birds):
    doubts = (
        class_finding(
            ClassFindingKind.WHOLE, "owl", "owl fails", verdict=Verdict.NOT_CONFIRMED, n_failed=7
        ),
    )
    answer = first_answer(birds.model_copy(update={"class_findings": doubts}))
    assert [one.class_name for one in answer.findings] == ["gull"]
    assert not answer.classes[0].is_failing
    assert answer.not_confirmed == (
        "2 suspicions: 1 with too few samples (owl: in the snow), 1 that may be chance (owl: fails as a whole)"
    )


def test_first_answer__hundreds_of_findings__few_shown_all_counted(birds):
    found = [heron_slice("gull", f"kind {number}", f"c{number}") for number in range(300)]
    evidence = tuple(evidence_of(one, Verdict.CONFIRMED) for one in found)
    answer = first_answer(birds.model_copy(update={"slices": tuple(found), "evidence": evidence}))
    assert (len(answer.findings), answer.n_findings) == (MAX_FINDINGS, 301)
    assert answer.findings[0].class_name == "heron"


def test_first_answer__problems_are_told_apart_from_other_checks(birds):
    wrong = PreflightCheck(
        check="class order", state=CheckState.PROBLEM, sentence="Shifted.", settings_line="a = 1"
    )
    answer = first_answer(birds.model_copy(update={"checks": (*birds.checks, wrong)}))
    assert answer.problems == (wrong,)
    assert "Shifted" not in answer.checks
    assert "3 files set aside" in answer.checks


def test_first_answer__without_advice_it_says_what_the_repair_did(birds, record):
    assert first_answer(record).repaired.startswith("Accuracy on “apple: green” rose from")
    advised = record.model_copy(update={"advice": birds.advice})
    assert first_answer(advised).repaired == ""
    assert first_answer(advised).to_do[0].sentence == "Label about 10: to_label.csv."


def test_first_answer__run_of_an_earlier_version_has_less_to_say(birds):
    bare = birds.model_copy(
        update={
            "checks": (), "class_findings": (), "advice": (), "slices": (), "evidence": (), "classifier": None, "settings": {},
        }
    )  # fmt: skip
    answer = first_answer(bare)
    assert answer.headline == "The classifier: how often it is right was not measured"
    assert (answer.classes, answer.findings, answer.to_do, answer.not_confirmed) == ((), (), (), "")
    assert answer.findings_note == "none: nothing systematic stood out that could be tested"


def test_first_answer__nothing_confirmed_says_how_many_were_tested(birds):
    night, snow = birds.slices
    evidence = (evidence_of(night, Verdict.NOT_CONFIRMED), evidence_of(snow, Verdict.TOO_FEW))
    answer = first_answer(birds.model_copy(update={"evidence": evidence, "class_findings": ()}))
    assert answer.findings_note == "none: nothing systematic was confirmed, 1 slice tested"


def test_first_answer__classes_leave_half_of_the_room_to_slices(birds):
    kind = ClassFindingKind.WHOLE
    whole = [class_finding(kind, f"c{n}", f"c{n} fails", n_failed=90 - n) for n in range(9)]
    found = [heron_slice("gull", f"kind {number}", f"c{number}") for number in range(9)]
    evidence = tuple(evidence_of(one, Verdict.CONFIRMED) for one in found)
    update = {"slices": tuple(found), "evidence": evidence, "class_findings": tuple(whole)}
    answer = first_answer(birds.model_copy(update=update))
    assert [one.class_name for one in answer.findings] == ["c0", "c1", "c2", "gull", "gull"]
    assert [one.class_name for one in first_findings(answer.findings, 2)] == ["c0", "gull"]
    assert [one.class_name for one in first_findings(answer.findings, 1)] == ["c0"]
    assert len(first_findings(answer.findings[3:], 1)) == 1


def test_first_answer__what_a_class_is_taken_for_is_not_said_twice(birds):
    def said(kind, other, sentence):
        made = class_finding(kind, "heron", sentence, n_failed=48)
        return made.model_copy(update={"other_class": other})

    findings = (
        said(ClassFindingKind.CONFUSED, "crane", "taken for crane"),
        said(ClassFindingKind.CONFUSED, "gull", "taken for gull"),
        said(ClassFindingKind.WHOLE, "crane", "fails; mostly taken for crane"),
    )
    answer = first_answer(birds.model_copy(update={"class_findings": findings}))
    assert [one.sentence for one in answer.findings if not one.slice_id] == [
        "fails; mostly taken for crane",
        "taken for gull",
        "taken for crane",
    ]
