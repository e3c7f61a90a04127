import json

import numpy as np
import pytest

from weakspot.core.errors import DataError, StoreError
from weakspot.core.run import no_stage_progress
from weakspot.core.samples import marked_attributes
from weakspot.discover.attributes import AttributesDiscoverer
from weakspot.project.project import Project
from weakspot.web.services import attributes as attribute_columns
from weakspot.web.services.attributes import (
    EditRequest,
    attribute_histograms,
    edit_attributes,
    edits_of,
)
from weakspot.web.services.combinations import prove_combination
from weakspot.web.services.workspace import Workspace

TINT = [
    {"title": "greenish", "phrases": ["a photo of a green object", "an image of something green"]},
    {"title": "reddish", "phrases": ["a photo of a red object", "an image of something red"]},
    {"title": "bluish", "phrases": ["a photo of a blue object", "an image of something blue"]},
]


ASSIGNED = "colour (assigned)"


def _edit(workspace, kind, **fields):
    version = attribute_histograms(workspace).version
    return edit_attributes(workspace, EditRequest(version=version, kind=kind, **fields), by="Ann")


def _attribute(workspace, attribute_id, title=None):
    listed = attribute_histograms(workspace, title).attributes
    return next(one for one in listed if one.attribute_id == attribute_id)


def _totals(workspace, attribute_id):
    values = _attribute(workspace, attribute_id).values
    return {value.title: value.failures.total for value in values}


def _assign(workspace):
    attribute_columns.assign(Project.open(workspace.project.folder), no_stage_progress)


def test_edit__rename_attribute_and_value__only_names_change(attributed):
    before = _totals(attributed, "colour")
    _edit(attributed, "rename attribute", attribute="colour", title="paint")
    result = _edit(attributed, "rename value", attribute="colour", values=["green"], title="mossy")
    assert (result.version, result.waiting) == (2, [])
    found = _attribute(attributed, "colour")
    assert found.name == "paint"
    assert _totals(attributed, "colour") == {
        ("mossy" if name == "green" else name): total for name, total in before.items()
    }


def test_edit__merge__needs_no_model_and_sums_up(attributed):
    before = _totals(attributed, ASSIGNED)
    meant = {"values": ["red", "orange"], "title": "warm"}
    assert _edit(attributed, "merge values", attribute=ASSIGNED, **meant).waiting == []
    assert _totals(attributed, ASSIGNED)["warm"] == before["red"] + before["orange"]
    values = {value.title: value for value in _attribute(attributed, ASSIGNED).values}
    assert values["warm"].merged == ["red", "orange"]


def test_edit__delete_value_of_own_column__counts_as_unknown(attributed):
    before = _totals(attributed, "colour")["green"]
    _edit(attributed, "delete value", attribute="colour", values=["green"])
    assert _attribute(attributed, "colour").unknown.total == before


def test_edit__add_attribute__waits_until_assigned_and_then_tells_the_truth(attributed):
    assert _edit(attributed, "add attribute", title="tint", given=TINT).waiting == ["tint"]
    assert _attribute(attributed, "tint").state == "waiting"
    _assign(attributed)
    found = _attribute(attributed, "tint")
    truth = _totals(attributed, "colour")
    assert (found.state, found.source) == ("assigned", "given")
    for shade, colour in (("greenish", "green"), ("reddish", "red")):
        assert _totals(attributed, "tint")[shade] >= 0.9 * truth[colour]


def test_edit__add_move_and_other_phrases__only_what_changed_is_told(attributed):
    _edit(attributed, "add attribute", title="tint", given=TINT)
    _assign(attributed)
    shelf = attributed.project.store.data / "attributes"
    first = {path.name: path.stat().st_mtime_ns for path in shelf.iterdir()}
    result = _edit(attributed, "add value", attribute="tint", given=[{"title": "yellowish"}])
    assert result.waiting == ["tint"]
    moved = _edit(attributed, "move value", attribute=ASSIGNED, values=["white"], to="tint")
    assert moved.waiting == [ASSIGNED, "tint"]
    _assign(attributed)
    now = {path.name: path.stat().st_mtime_ns for path in shelf.iterdir()}
    assert first.items() <= now.items()
    tints = [value.title for value in _attribute(attributed, "tint").values]
    assert tints == ["greenish", "reddish", "bluish", "yellowish", "white"]
    assert "white" not in _totals(attributed, ASSIGNED)
    phrases = [{"title": "", "phrases": ["a photo of a white object"]}]
    _edit(attributed, "change phrases", attribute="tint", values=["white"], given=phrases)
    white = next(value for value in _attribute(attributed, "tint").values if value.title == "white")
    assert white.phrases[0] == "a photo of a white object"
    assert len(white.phrases) == 2


def test_edit__undo_and_redo__with_history(attributed):
    before = _totals(attributed, "colour")
    _edit(attributed, "merge values", attribute="colour", values=["red", "green"], title="ripe")
    _edit(attributed, "undo", target=1)
    assert _totals(attributed, "colour") == before
    history = edits_of(attributed)
    told = [(one.number, one.state, one.by) for one in history.edits]
    assert told == [(2, "happened", "Ann"), (1, "undone", "Ann")]
    assert history.edits[1].sentence == "Merge “red”, “green” of “colour” into “ripe”"
    _edit(attributed, "redo", target=1)
    assert "ripe" in _totals(attributed, "colour")
    with pytest.raises(DataError, match="already"):
        _edit(attributed, "redo", target=1)


def test_edit__undo_what_a_later_edit_stands_on__refused_with_its_number(attributed):
    _edit(attributed, "add attribute", title="tint", given=TINT)
    _edit(attributed, "rename value", attribute="tint", values=["bluish"], title="cold")
    with pytest.raises(DataError) as refusal:
        _edit(attributed, "undo", target=1)
    assert refusal.value.fix == "First undo the edit 2."


def test_edit__somebody_else_was_faster__refused_and_nothing_lost(attributed):
    version = attribute_histograms(attributed).version
    other = Workspace(Project.open(attributed.project.folder))
    asked = EditRequest(version=version, kind="delete attribute", attribute="size")
    edit_attributes(other, asked, by="Bob")
    with pytest.raises(StoreError, match="has edited the attributes since"):
        edit_attributes(attributed, asked.model_copy(update={"attribute": "count"}), by="Ann")
    assert [one.by for one in edits_of(attributed).edits] == ["Bob"]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("rename attribute", {"attribute": "no such", "title": "x"}),
        ("rename attribute", {"attribute": "colour", "title": "background"}),
        ("rename attribute", {"attribute": "colour", "title": " \x00 "}),
        ("rename value", {"attribute": "colour", "values": ["green"], "title": "Red"}),
        ("rename value", {"attribute": "colour", "values": [], "title": "x"}),
        ("merge values", {"attribute": "colour", "values": ["green"], "title": "x"}),
        ("merge values", {"attribute": "colour", "values": ["green", "red"], "title": "blue"}),
        ("add value", {"attribute": "colour", "given": [{"title": "x"}]}),
        (
            "add value",
            {"attribute": ASSIGNED, "given": [{"title": "x", "phrases": ["\x00"]}]},
        ),
        ("add attribute", {"title": "x", "given": [{"title": "only"}]}),
        ("add attribute", {"title": "x", "given": [{"title": "same"}, {"title": "Same"}]}),
        (
            "move value",
            {"attribute": ASSIGNED, "values": ["red"], "to": ASSIGNED},
        ),
        ("undo", {"target": 7}),
    ],
)
def test_edit__what_cannot_be_done__is_refused_and_nothing_written(attributed, kind, fields):
    with pytest.raises(DataError):
        _edit(attributed, kind, **fields)
    assert edits_of(attributed).edits == []


def test_edit__slices_that_were_found__still_mean_the_same(attributed):
    chosen = {ASSIGNED: "green"}
    proven = prove_combination(attributed, "disc", chosen, by="Ann")
    before = attributed.record(proven.run_id).slice_by_id(proven.line.slice_id)
    members = before.members(attributed.samples_for(attributed.record(proven.run_id)))
    _edit(attributed, "rename value", attribute=ASSIGNED, values=["green"], title="mossy")
    _edit(attributed, "merge values", attribute=ASSIGNED, values=["red", "green"], title="ripe")
    later = prove_combination(attributed, "disc", {ASSIGNED: "red"}, by="Ann")
    merged = attributed.record(later.run_id).slice_by_id(later.line.slice_id)
    _edit(attributed, "delete attribute", attribute=ASSIGNED)
    fresh = Workspace(Project.open(attributed.project.folder))
    samples = fresh.samples_for(fresh.record())
    assert np.array_equal(before.members(samples), members)
    assert set(members) < set(merged.members(samples))


def test_edit__the_method_uses_the_same_columns_and_names(attributed):
    _edit(attributed, "merge values", attribute="colour", values=["green", "white"], title="pale")
    for name in ("kind", ASSIGNED):
        _edit(attributed, "delete attribute", attribute=name)
    project = Project.open(attributed.project.folder, methods=["attributes"])
    marked = marked_attributes(project.samples().dataset.table)
    assert ASSIGNED not in marked
    assert "colour" not in marked
    (column,) = [name for name in marked if name.startswith("colour (")]
    words = set(project.samples().dataset.metadata(column).to_pylist())
    assert {"green", "red"} <= words
    assert "white" not in words
    method = AttributesDiscoverer(
        columns=(column,), min_support=2, max_p=1.0, min_gap=0.0, n_permutations=0
    )
    found = method.discover(project.samples(), project.settings.failure.criterion(), seed=0)
    names = " ".join(one.names[0].contrast for one in found.slices)
    assert "pale" in names
    assert "green" not in names
    kept = json.loads((project.store.data / "attributes.json").read_text())
    assert kept["attributes"][0]["name"] == "colour"


def test_edit__of_something_that_is_gone__is_a_note_and_never_an_error(attributed):
    _edit(attributed, "rename attribute", attribute="size in the image", title="scale")
    path = attributed.project.folder / "weakspot.toml"
    off = "use_properties = false"
    path.write_text(path.read_text().replace(off, f"{off}\nuse_vocabulary = false"))
    workspace = Workspace(Project.open(attributed.project.folder))
    _assign(workspace)
    assert any("edit 1" in note for note in attribute_histograms(workspace).notes)


def test_edit__damaged_file__said_plainly(attributed):
    (attributed.project.folder / "attribute_edits.json").write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        attribute_histograms(attributed)
