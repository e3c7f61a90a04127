from weakspot.core.run import RunRecord
from weakspot.report.document import build_document


def test_build_document__headline_is_the_largest_confirmed_finding(record):
    document = build_document(record)
    assert document.headline == (
        "On “apple” images that fit “green” the classifier fails 73 % of the time (95 % interval 52–87 %), "
        "against 3 % on the other “apple” images."
    )
    assert [finding.title for finding in document.findings] == ["apple: green"]
    finding = document.findings[0]
    assert finding.phrase == "a photo of a green apple"
    assert finding.proof == (
        "Measured on 51 samples that took no part in finding it: 16 of 22 inside failed, 1 of 29 outside. A gap like this or "
        "larger would arise by chance with probability < 0.0001; corrected for the 2 slices tested together: < 0.0001."
    )
    assert finding.cause == (
        "Evidence points to too few such samples in training.",
        "Such samples are few.",
    )
    assert finding.strength == "0.88 by directions, p = 0.005"


def test_build_document__summary_counts(record):
    assert build_document(record).summary == (
        "The classifier fails on 36 of 148 evaluated samples (24 %); a failure means that the predicted label is not the true one.",
        "2 slices found, 2 tested on held-out samples, 1 confirmed.",
        "Accuracy on “apple: green” rose from 7 % to 67 %: 1 of 15 samples right before, 10 after (95 % interval 42–85 %); "
        "the best baseline there, “least confident”, reached 60 % (9 of 15; overall 84 %).",
    )


def test_build_document__what_was_not_confirmed_is_kept(record):
    (item,) = build_document(record).not_confirmed
    assert item.verdict == "not confirmed: the difference may be chance"
    assert item.evidence.q_value == 0.31


def test_build_document__one_repair_is_no_comparison(record):
    document = build_document(record)
    assert [repair.strategy for repair in document.repairs] == ["slice-balanced"]
    assert document.strategies is None


def test_build_document__several_repairs_are_compared(compared_record):
    document = build_document(compared_record)
    assert [repair.strategy for repair in document.repairs] == [
        "slice-balanced",
        "group-dro",
        "pool-budgeted",
    ]
    assert document.strategies is not None
    assert document.summary[-1] == "3 ways of repairing were compared; see the table."
    assert document.summary[-2].startswith("Accuracy on “apple: green” rose from 7 % to 67 %")


def test_build_document__secrets_are_not_shown(record):
    settings = dict(build_document(record).settings)
    assert settings["classifier.options.api_key"] == "(not shown)"
    assert settings["classifier.options.url"] == "https://(not shown)@host.example/v1"
    assert settings["costs"] == "[1, 2]"


def test_build_document__nothing_found():
    empty = RunRecord(run_id="r", command="c", started="2026-01-01T00:00:00Z", seed=0)
    document = build_document(empty)
    assert document.headline.startswith("No slice was found to test")
    assert document.findings == ()
    assert document.summary == ("0 slices found, 0 tested on held-out samples, 0 confirmed.",)


def test_build_document__nothing_confirmed(record):
    unproven = record.model_copy(
        update={"evidence": record.evidence[:1], "slices": record.slices[:1]}
    )
    assert (
        build_document(unproven).headline
        == "No systematic failure was confirmed among 1 slice found."
    )
