from tests.build import write_fruit_table

from weakspot.gate.watch import RoundRequest, run_round
from weakspot.store.project import ProjectStore

POLICY = "[slice_accuracy]\nmin = 0.9\n"


def test_take_turn__the_first_look_makes_a_run(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    ProjectStore.create(folder)
    turn = run_round(RoundRequest(folder=folder), None)
    assert (turn.kind, turn.changed, turn.is_new_run) == ("run", ("first look",), True)
    assert (turn.n_samples, turn.n_new_samples, turn.n_confirmed) == (400, 400, 1)
    assert turn.new is None


def test_take_turn__what_did_not_change_is_not_computed(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    ProjectStore.create(folder)
    first = run_round(RoundRequest(folder=folder), None)
    second = run_round(RoundRequest(folder=folder), first)
    assert (second.kind, second.run_id) == ("unchanged", first.run_id)
    assert len(ProjectStore.open(folder).runs.run_ids()) == 1


def test_take_turn__new_samples_and_better_predictions_are_told(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    ProjectStore.create(folder)
    first = run_round(RoundRequest(folder=folder), None)
    write_fruit_table(folder, n_samples=480, green_right_every=1)
    better = run_round(RoundRequest(folder=folder), first)
    assert (better.changed, better.n_new_samples) == (("samples changed",), 80)
    assert (better.new, better.gone) == ((), ("apple: green",))
    write_fruit_table(folder, n_samples=480)
    worse = run_round(RoundRequest(folder=folder), better)
    assert (worse.new, worse.gone) == (("apple: green",), ())
    assert "new: “apple: green”; gone: none" in worse.line


def test_take_turn__other_settings_are_another_run_and_old_ones_are_found_again(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    ProjectStore.create(folder)
    first = run_round(RoundRequest(folder=folder), None)
    write_fruit_table(folder, seed=7)
    second = run_round(RoundRequest(folder=folder), first)
    assert (second.changed, second.is_new_run) == (("settings changed",), True)
    write_fruit_table(folder, seed=0)
    third = run_round(RoundRequest(folder=folder), second)
    assert (third.run_id, third.is_new_run) == (first.run_id, False)
    assert "was there already" in third.line


def test_take_turn__a_policy_is_judged_and_a_change_of_it_is_a_change(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    ProjectStore.create(folder)
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    first = run_round(RoundRequest(folder=folder, policy=policy), None)
    assert first.is_kept is False
    assert first.line.endswith("The policy is violated: 1 of 1 checks.")
    policy.write_text(POLICY.replace("0.9", "0.1"))
    second = run_round(RoundRequest(folder=folder, policy=policy), first)
    assert (second.changed, second.is_new_run, second.is_kept) == (("policy changed",), False, True)
    third = run_round(RoundRequest(folder=folder, policy=policy, judge_always=True), second)
    assert (third.kind, third.is_kept) == ("unchanged", True)


def test_take_turn__samples_that_took_the_place_of_others_are_new(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    ProjectStore.create(folder)
    first = run_round(RoundRequest(folder=folder), None)
    write_fruit_table(folder, first=100)
    assert run_round(RoundRequest(folder=folder), first).n_new_samples == 100
