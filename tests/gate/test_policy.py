from datetime import date

import pytest

from weakspot.core.errors import ConfigError
from weakspot.gate.policy import RULES, Policy, load_policy, parse_policy, without_comparisons

FULL = """
[judging]
level = 0.9
min_samples = 20
when_unsure = "fail"
[overall_accuracy]
min = 0.9
[class_accuracy]
min = 0.8
judge = "point"
per_class = {pear = 0.5}
[slice_accuracy]
min = 0.7
[slice_gap]
max = 0.2
[confirmed_slices]
max = 2
[failing_classes]
max = 1
[new_slices]
max = 0
same_at = 0.6
[regressions]
max_drop = 0.02
of = ["slices"]
[[slices]]
name = "green apples"
class = "apple"
column = "kind"
value = "green"
[[accepted]]
slice = "apple: red"
reason = "known"
until = 2026-12-31
"""


def _problems(given):
    with pytest.raises(ConfigError) as caught:
        parse_policy(given, where="policy.toml")
    return caught.value.what


def test_load_policy__reads_every_key(tmp_path):
    (tmp_path / "policy.toml").write_text(FULL)
    policy = load_policy(tmp_path / "policy.toml")
    assert policy.rules == RULES
    assert policy.judging.when_unsure == "fail"
    assert policy.class_accuracy.per_class == {"pear": 0.5}
    assert policy.slices[0].wanted == ("green",)
    assert policy.accepted[0].until == date(2026, 12, 31)
    assert policy.needs_baseline


def test_load_policy__every_key_of_the_model_is_in_the_full_example():
    assert (
        set(Policy.model_fields) - {name for name in Policy.model_fields if name in FULL} == set()
    )


def test_load_policy__a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no policy file") as caught:
        load_policy(tmp_path / "policy.toml")
    assert caught.value.where.endswith("policy.toml")


def test_load_policy__what_is_no_toml_is_refused(tmp_path):
    (tmp_path / "policy.toml").write_text("slice_accuracy = {")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_policy(tmp_path / "policy.toml")


def test_load_policy__a_folder_is_no_policy(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_policy(tmp_path)


def test_parse_policy__all_problems_come_at_once():
    said = _problems(
        {
            "slice_acuracy": {"min": 0.5},
            "slice_gap": {"judge": "interval"},
            "regressions": {"max_drop": 2, "juge": "point"},
            "slices": [{"name": "a", "class": "b", "colum": "c"}],
        }
    )
    assert "slice_acuracy: there is no such key" in said
    assert "did you mean slice_accuracy?" in said
    assert "slice_gap.max: this rule has no bar" in said
    assert "regressions.max_drop: Input should be less than or equal to 1 (given: 2)" in said
    assert (
        "regressions.juge: there is no such key (known here: drop_that_matters, judge, max_drop, of); did you mean judge?"
        in said
    )
    assert "slices.0.colum: there is no such key" in said
    assert "class, column" in said


def test_parse_policy__without_a_rule_it_says_nothing():
    assert "there is no rule" in _problems({})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"column": "kind"}, "a column needs value"),
        ({"phrase": "green", "value": "x"}, "values belong to a column"),
        ({"phrase": "green", "column": "kind", "value": "x"}, "either a column or a phrase"),
        ({}, "either a column or a phrase"),
    ],
)
def test_parse_policy__a_named_slice_is_told_in_one_way(given, said):
    assert said in _problems(
        {"slice_gap": {"max": 0.1}, "slices": [{"name": "a", "class": "b", **given}]}
    )


def test_parse_policy__an_accepted_slice_needs_reason_and_date():
    said = _problems({"slice_gap": {"max": 0.1}, "accepted": [{"slice": "a"}]})
    assert "accepted.0.reason: is needed" in said
    assert "accepted.0.until: is needed" in said


def test_parse_policy__a_name_twice_is_refused():
    one = {"name": "a", "class": "b", "phrase": "c"}
    assert "listed twice: a" in _problems({"slice_gap": {"max": 0.1}, "slices": [one, one]})


def test_without_comparisons__leaves_what_needs_no_baseline():
    both = parse_policy({"slice_gap": {"max": 0.1}, "new_slices": {"max": 0}}, where="here")
    assert without_comparisons(both).rules == ("slice_gap",)
    assert without_comparisons(parse_policy({"new_slices": {"max": 0}}, where="here")) is None


def test_policy__the_drop_that_matters_lies_beyond_what_is_let_pass():
    with pytest.raises(ConfigError, match="larger than max_drop"):
        parse_policy({"regressions": {"max_drop": 0.1, "drop_that_matters": 0.05}}, where="test")
