from weakspot.core.repairs import GroupKind
from weakspot.repair.advice.kinds import best_repair


def test_best_repair__of_a_class_the_one_that_helps_most(world, make_change, make_result):
    kind = world.kind()
    results = (
        make_result("up-weight", make_change("heron", GroupKind.CLASS, 6)),
        make_result("worst-class", make_change("heron", GroupKind.CLASS, 9)),
        make_result("luck", make_change("heron", GroupKind.CLASS, 12, p_value=0.3)),
        make_result("other", make_change("gull", GroupKind.CLASS, 30)),
    )
    found = best_repair(world.record.model_copy(update={"repairs": results}), kind)
    assert found.plan.repairer == "worst-class"
    assert found.helps


def test_best_repair__slices_are_told_by_their_place_in_the_plan(sliced, make_change, make_result):
    kind = sliced.kind()
    changes = (
        make_change(kind.title, GroupKind.SLICE, 1),
        make_change("rest", GroupKind.COMPLEMENT, 30),
        make_change(kind.title, GroupKind.SLICE, 7),
    )
    result = make_result("slice-balanced", *changes, slice_ids=("another", kind.subject))
    found = best_repair(sliced.record.model_copy(update={"repairs": (result,)}), kind)
    assert found.change.gained == 7


def test_best_repair__a_fall_or_chance_is_no_help(world, make_change, make_result):
    kind = world.kind()
    for change in (
        make_change("heron", GroupKind.CLASS, 0, lost=4),
        make_change("heron", GroupKind.CLASS, 3, p_value=0.2),
        make_change("heron", GroupKind.CLASS, 0),
    ):
        record = world.record.model_copy(update={"repairs": (make_result("one", change),)})
        assert not best_repair(record, kind).helps
