"""Any file of a project cut short, overwritten or emptied: it is made anew, or named in an error; results are never wrong."""

import json
import random
import shutil

import pytest
from tests.build import planted_project

from weakspot.core.errors import WeakspotError
from weakspot.project.project import Project

N_SAMPLES = 800
HARMS = ("cut", "changed", "emptied", "gone")


def found_by(project):
    """What a run finds, without times and ids made of them."""
    record = project.run()
    project.report(record.run_id)
    repairs = [[(arm.arm, arm.changes) for arm in prediction.arms] for prediction in record.repairs]
    return json.dumps(
        [[one.model_dump(mode="json") for one in (*record.slices, *record.evidence)], repr(repairs)]
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    project = planted_project(tmp_path_factory.mktemp("finished"), N_SAMPLES)
    return project.folder, found_by(project)


def harm(path, kind, draw):
    data = path.read_bytes()
    if kind == "gone":
        path.unlink()
    elif kind == "cut":
        path.write_bytes(data[: draw.randrange(len(data))] if data else b"")
    elif kind == "emptied":
        path.write_bytes(b"")
    else:
        place = draw.randrange(max(1, len(data)))
        path.write_bytes(
            data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :] if data else b"?"
        )


def kind_of(path):
    """Files of one kind share a name but for digits."""
    return (
        path.parent.name if path.suffix in (".npy", ".arrow") else "",
        "".join(one for one in path.name if one.isalpha()),
    )


def test_run__damaged_file__is_made_anew_or_named(finished, tmp_path):
    folder, expected = finished
    files = sorted(
        path.relative_to(folder) for path in (folder / ".weakspot").rglob("*") if path.is_file()
    )
    kinds = {kind_of(path): path for path in files}
    assert len(kinds) >= 12
    draw = random.Random(7)
    told = {}
    for number, path in enumerate(kinds.values()):
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        harm(copy / path, HARMS[number % 4], draw)
        try:
            assert found_by(Project.open(copy)) == expected, path
        except WeakspotError as error:
            told[path] = error
        shutil.rmtree(copy)
    assert len(told) < len(kinds) / 2, told
    for path, error in told.items():
        assert error.fix, path
        model = path.parent.name.rsplit("-", 1)[0]  # folders of caches are named after models
        assert any(name in str(error) for name in (path.name, path.parent.name, model)), error
