import pytest

from weakspot.core.errors import DataError
from weakspot.core.repairs import RepairArm, RepairPlan, RepairResult
from weakspot.core.run import RunRecord
from weakspot.core.slices import DataUse
from weakspot.repair.export import (
    HEAD,
    current_id,
    forget_repeats,
    go_back,
    head_name,
    set_repair_aside,
)
from weakspot.store.project import ProjectStore


@pytest.fixture
def store(tmp_path):
    return ProjectStore.create(tmp_path)


def _result(strategy: str, *, is_done: bool = True) -> RepairResult:
    arm = RepairArm(arm=strategy, is_baseline=False, note="", n_trained=1, changes=())
    return RepairResult(
        plan=RepairPlan(slice_ids=("a",), repairer=strategy),
        measured_on=DataUse.nothing(),
        arms=(arm,) if is_done else (),
    )


def _repair(store, record: RunRecord, strategy: str) -> RunRecord:
    """As a project does it: set aside what is there, retrain, write the new layer and the run."""
    record = set_repair_aside(store, record)
    store.runs.save_artefact(record.run_id, HEAD.name, strategy.encode())
    record = record.model_copy(
        update={"repairs": (_result(strategy),), "repaired": f"2026-01-0{len(strategy)}"}
    )
    store.runs.save(record)
    return record


@pytest.fixture
def record(store):
    made = RunRecord(run_id="r", command="", started="", seed=0)
    store.runs.save(made)
    return made


def _strategies(record: RunRecord) -> list[str]:
    return [one.repairs[0].plan.repairer for one in record.earlier_repairs]


def test_repair__two_within_a_second__the_later_is_known_to_be_later(store, record):
    first = set_repair_aside(store, record)
    second = set_repair_aside(store, first)
    assert first.repaired < second.repaired


def test_repair__a_second_one__the_first_is_kept_with_its_layer(store, record):
    first = _repair(store, record, "a")
    second = _repair(store, first, "bb")
    assert (_strategies(second), second.repairs[0].plan.repairer) == (["a"], "bb")
    kept = second.earlier_repairs[0]
    assert kept.repair_id == current_id(first)
    assert store.runs.load_artefact("r", head_name(kept.repair_id)) == b"a"
    assert store.runs.load_artefact("r", HEAD.name) == b"bb"


def test_repair__nothing_came_of_the_first__nothing_to_keep(store, record):
    waiting = record.model_copy(update={"repairs": (_result("a", is_done=False),)})
    assert set_repair_aside(store, waiting).earlier_repairs == ()
    assert current_id(record) == ""


def test_forget_repeats__the_same_once_more__kept_once(store, record):
    second = _repair(store, _repair(store, record, "a"), "bb")
    again = _repair(store, second, "bb")
    assert _strategies(again) == ["a", "bb"]
    assert _strategies(forget_repeats(again)) == ["a"]
    assert forget_repeats(again).repairs == second.repairs
    assert forget_repeats(second) == second


def test_go_back__to_the_first__and_forth_again(store, record):
    second = _repair(store, _repair(store, record, "a"), "bb")
    there = go_back(store, "r", second.earlier_repairs[0].repair_id)
    assert store.runs.load("r") == there
    assert (there.repairs[0].plan.repairer, _strategies(there)) == ("a", ["bb"])
    assert store.runs.load_artefact("r", HEAD.name) == b"a"
    back = go_back(store, "r", there.earlier_repairs[0].repair_id)
    assert (back.repairs, back.repaired) == (second.repairs, second.repaired)
    assert store.runs.load_artefact("r", HEAD.name) == b"bb"
    assert _strategies(_repair(store, back, "ccc")) == ["a", "bb"]


def test_go_back__no_such_repair__said(store, record):
    with pytest.raises(DataError, match="no such repair"):
        go_back(store, "r", "0" * 12)
