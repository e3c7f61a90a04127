import json

from weakspot.app.looks import HYPOTHESES_FILE, Look, LookLog
from weakspot.store.project import ProjectStore


def look(phrase: str, *, threshold: float | None = None, measured_on: str = "half", p_value: float = 0.5) -> Look:
    return Look(
        class_name="disc",
        phrase=phrase,
        measured_on=measured_on,
        p_value=p_value,
        error_score=0.3,
        held_out_error_score=0.2,
        threshold=threshold,
        by="ann",
    )


def test_at__same_question_again__newest_answer_counts_once(tmp_path):
    log = LookLog(ProjectStore.create(tmp_path))
    log.add([look("green"), look("dark"), look("green", p_value=0.1), look("green", threshold=0.25)])
    log.add([look("green", threshold=0.25 + 1e-9), look("green", measured_on="another half")])
    found = log.at("half")
    assert [one.question for one in found] == [("disc", "green", None), ("disc", "dark", None), ("disc", "green", 0.25)]
    assert found[0].p_value == 0.1
    assert found[0].by == "ann"


def test_at__lines_that_are_no_looks__are_passed_over(tmp_path):
    log = LookLog(ProjectStore.create(tmp_path))
    log.add([look("green")])
    path = tmp_path / HYPOTHESES_FILE
    with path.open("a") as stream:
        stream.write('{"class": "disc"}\nnull\n{"half a line')
    assert [one.phrase for one in log.at("half")] == ["green"]
    assert json.loads(path.read_text().splitlines()[0])["class"] == "disc"


def test_at__no_file_yet__is_empty(tmp_path):
    assert LookLog(ProjectStore.create(tmp_path)).at("half") == []
