from weakspot.report.document import build_document


def test_build_document__headline_is_the_largest_confirmed_finding(record):
    document = build_document(record)
    assert document.headline == (
        "On “apple” images that fit “green” the classifier fails 73 % of the time (95 % interval 52–87 %), "
        "against 3 % on the other “apple” images."
    )
    assert [finding.slice_.title for finding in document.findings] == ["apple: green"]
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


def test_build_document__secrets_are_not_shown(record):
    settings = dict(build_document(record).settings)
    assert settings["classifier.options.api_key"] == "(not shown)"
    assert settings["classifier.options.url"] == "https://(not shown)@host.example/v1"
    assert settings["costs"] == "[1, 2]"


def test_build_document__nothing_confirmed(record):
    unproven = record.model_copy(
        update={"evidence": record.evidence[:1], "slices": record.slices[:1]}
    )
    assert (
        build_document(unproven).headline
        == "No systematic failure was confirmed among 1 slice found."
    )
