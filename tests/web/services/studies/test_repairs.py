import pytest
from tests.build import planted_project

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.run import no_stage_progress
from weakspot.project.project import Project
from weakspot.web.services.studies import ask_for_repairs, repairs, repairs_of
from weakspot.web.services.work import do_work
from weakspot.web.services.workspace import Workspace

GREEN = ("disc", "green", None)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    return planted_project(tmp_path_factory.mktemp("repairs"), 900)


def test_repairs__the_planted_words__measure_the_worst_group_before_and_after(project):
    ask_for_repairs(project, "abc", [GREEN])
    assert repairs(project, no_stage_progress, study="abc") == {
        "study": "abc",
        "n_phrases": 1,
        "n_repaired": 1,
    }
    found = repairs_of(Workspace(project), "abc")[GREEN]
    assert 0 < found.worst_before <= found.worst_after < 1
    assert found.note == ""


def test_repairs__started_again__does_only_what_is_missing(project):
    told = []
    ask_for_repairs(project, "again", [GREEN])
    repairs(project, no_stage_progress, study="again")
    journal = project.store.data / "studies" / "again.jsonl"
    with journal.open("a") as stream:
        stream.write('{"key": "cut off by a ki')
    ask_for_repairs(project, "again", [GREEN, ("disc", "red", None)])
    result = repairs(project, lambda *step: told.append(step), study="again")
    assert result["n_repaired"] == 1
    assert told[-1] == ("repairs", 1, 1)
    assert set(repairs_of(Workspace(project), "again")) == {GREEN, ("disc", "red", None)}


def test_repairs__words_that_cannot_be_repaired_by__become_a_note(project):
    odd = [("disc", "green", 1.9), ("no such class", "green", None)]
    ask_for_repairs(project, "odd", odd)
    repairs(project, no_stage_progress, study="odd")
    found = repairs_of(Workspace(project), "odd")
    assert all(found[triple].worst_after is None and found[triple].note for triple in odd)


def test_repairs_of__other_settings__are_not_shown(project):
    ask_for_repairs(project, "abc", [GREEN])
    repairs(project, no_stage_progress, study="abc")
    other = Project(
        project.folder, project.settings.model_copy(update={"seed": project.settings.seed + 1})
    )
    assert repairs_of(Workspace(other), "abc") == {}


def test_repairs__nothing_asked_for__is_refused(project):
    with pytest.raises(DataError, match="Nothing was asked"):
        repairs(project, no_stage_progress, study="unknown")


@pytest.mark.parametrize("study", ["../../etc", "a/b", "", "a\x00", 3])
def test_repairs__study_that_is_no_identifier__is_refused(project, study):
    with pytest.raises(ConfigError):
        do_work("study-repairs", project, {"study": study}, no_stage_progress)


def test_repairs__given_groups__are_the_same_for_every_phrase(project):
    red = ("disc", "red", None)
    ask_for_repairs(project, "given", [GREEN, red], groups="colour")
    repairs(project, no_stage_progress, study="given")
    found = repairs_of(Workspace(project), "given", groups="colour")
    one, other = found[GREEN].given, found[red].given
    assert one.given_worst_before == other.given_worst_before
    assert one.given_average_before == other.given_average_before
    for figures in (one, other):
        assert figures.given_gap_after == pytest.approx(
            figures.given_average_after - figures.given_worst_after
        )
        assert figures.given_change_low <= figures.given_change_high
    assert one.given_worst_after >= one.given_worst_before
    assert repairs_of(Workspace(project), "given") == {}
