import shutil
from pathlib import Path

import pytest
from PIL import Image

from weakspot.core.run import CheckState, PreflightCheck
from weakspot.project.doctor import (
    DoctorFinding,
    _images_of,
    examine_project,
    is_in_order,
    verdict_sentence,
)
from weakspot.project.project import Project

FINE = DoctorFinding(area="python", state="ok", found="3.11")
ABSENT = DoctorFinding(area="extra ray: ray", state="missing", found="none", is_optional=True)
BROKEN = DoctorFinding(area="memory", state="broken", found="1 MB free")
NOTICE = PreflightCheck(check="files", state=CheckState.NOTICE, sentence="3 of 9.", short="3 files")
WRONG = PreflightCheck(
    check="class order", state=CheckState.PROBLEM, sentence="So.", short="names in the wrong order"
)


@pytest.mark.parametrize(
    ("findings", "checks", "said"),
    [
        ((FINE, ABSENT), (), "In order: this machine is ready."),
        ((FINE,), (NOTICE,), "In order: this machine and the project are ready, 1 thing is worth knowing."),
        ((BROKEN,), (), "Not in order: memory is broken."),
        ((FINE,), (NOTICE, WRONG), "Not in order: names in the wrong order."),
    ],
)  # fmt: skip
def test_verdict_sentence__cases(findings, checks, said):
    assert verdict_sentence(findings, checks) == said
    assert is_in_order(findings, checks) == said.startswith("In order")


def test_examine_project__a_table(tmp_path):
    rows = [f"{number},{'ab'[number % 2]},{'ab'[number % 2]},{number % 4}" for number in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["id,label,prediction,size", *rows]))
    Project.create(tmp_path / "p", data=str(tmp_path / "t.csv")).ingest()
    checks, findings = examine_project(tmp_path / "p")
    assert findings == ()
    found = {check.check: check.state for check in checks}
    assert found["class order"] == found["accuracy"] == CheckState.OK
    assert found["splits"] == CheckState.NOTICE


def test_examine_project__data_that_are_gone(tmp_path):
    (tmp_path / "weakspot.toml").write_text('[data]\nsource = "photos"\n')
    checks, (finding,) = examine_project(tmp_path)
    assert checks == ()
    assert finding.state == "broken"
    assert "nothing at this path" in finding.found


def test_examine_project__moved__finds_its_images_and_says_when_they_are_gone(tmp_path):
    for number in range(8):
        path = tmp_path / "first" / "photos" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number * 20, 0, 0)).save(path)
    (tmp_path / "first" / "weakspot.toml").write_text('[data]\nsource = "photos"\n')
    Project.open(tmp_path / "first").ingest()
    shutil.move(tmp_path / "first", tmp_path / "second")
    moved = Project.open(tmp_path / "second")
    places = moved.store.dataset().locations()
    assert all(place.startswith(str(tmp_path / "second")) for place in places)
    assert all(Path(place).exists() for place in places)
    shutil.move(tmp_path / "second" / "photos", tmp_path / "elsewhere")
    finding = next(one for one in _images_of(moved))
    assert (finding.area, finding.state) == ("images", "missing")
    assert str(tmp_path / "second" / "photos") in finding.found
    assert "weakspot.toml" in finding.fix
