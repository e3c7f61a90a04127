def test_policy_prediction__only_violations_fail_unless_what_is_unsure_does_too(result):
    assert [entry.rule for entry in result().failing] == ["slice_accuracy"]
    assert [entry.rule for entry in result(unsure_fails=True).failing] == [
        "slice_accuracy",
        "slice_gap",
    ]


def test_policy_prediction__says_the_verdict_in_a_sentence(result):
    assert result().headline == "The policy is violated: 1 of 4 checks."
    assert (
        result(unsure_fails=True).headline
        == "The policy is violated: 2 of 4 checks (what is not judged counts)."
    )
    kept = result().model_copy(update={"entries": result().entries[1:]})
    assert (kept.headline, kept.exit_code) == (
        "The policy is kept: 2 checks judged, 1 accepted, 1 not judged.",
        0,
    )
