from weakspot.core.run import StageRecord
from weakspot.run.stage_clock import stage_figures, stage_lines, write_profile
from weakspot.store.project import ProjectStore

STAGES = (
    StageRecord(stage="ingest", seconds=8.0, summary="", n_images=400, waiting=0.125),
    StageRecord(stage="methods", seconds=0.001, summary="says which"),
    StageRecord(stage="discover", seconds=0.25, summary=""),
)


def test_stage_figures__only_what_there_is():
    assert [stage_figures(one) for one in STAGES] == [
        "8.0 s, 50.0 images/s, 12 % waiting",
        "0.00 s",
        "0.25 s",
    ]


def test_stage_lines__one_a_stage_that_took_time():
    assert stage_lines(STAGES) == [
        "Where the time went (8.3 s in stages):",
        "  ingest    8.0 s, 50.0 images/s, 12 % waiting",
        "  discover  0.25 s",
    ]
    assert stage_lines(STAGES[1:2]) == []


def test_write_profile__a_picture_in_the_folder_of_the_run(tmp_path):
    store = ProjectStore.create(tmp_path)
    (store.runs.folder / "r1").mkdir(parents=True)
    path = write_profile(store, "r1", STAGES)
    assert path == store.runs.folder / "r1" / "profile.svg"
    drawn = path.read_text()
    assert "50.0 images/s" in drawn
    assert "methods" not in drawn
