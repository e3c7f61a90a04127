from weakspot.release.outcome import PolicyOutcome


def test_policy_outcome__only_violations_fail_unless_what_is_unsure_does_too(outcome):
    assert [entry.rule for entry in outcome().failing] == ["slice_accuracy"]
    assert [entry.rule for entry in outcome(unsure_fails=True).failing] == ["slice_accuracy", "slice_gap"]


def test_policy_outcome__says_the_verdict_in_a_sentence(outcome):
    assert outcome().headline == "The policy is violated: 1 of 4 checks."
    assert outcome(unsure_fails=True).headline == "The policy is violated: 2 of 4 checks (what is not judged counts)."
    kept = outcome().model_copy(update={"entries": outcome().entries[1:]})
    assert (kept.headline, kept.exit_code) == ("The policy is kept: 2 checks judged, 1 accepted, 1 not judged.", 0)


def test_policy_outcome__comes_back_from_json(outcome):
    made = outcome()
    assert PolicyOutcome.model_validate_json(made.model_dump_json()) == made
