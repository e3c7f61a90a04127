import json
import sys

import pytest
from tests.tools.made_bundle import made_bundle
from tests.tools.made_record import RUN_ID, bundle_with_run
from tests.tools.real_libraries import run_real

from weakspot.core.errors import ConfigError, MissingExtraError, StoreError
from weakspot.tools.trackers import log_wandb_run, run_metrics, run_parameters

LOG_AND_READ = """
import json, struct, sys
from pathlib import Path
from tests.tools.made_record import bundle_with_run
from wandb.proto.wandb_internal_pb2 import Record
from weakspot.tools.trackers import log_wandb_run

MARK, BLOCK, HEAD = 7, 32768, struct.Struct("<IHB")
WHOLE, LAST = 1, 4


def records(path):
    data, place, part = path.read_bytes(), MARK, b""
    while place < len(data):
        room = BLOCK - place % BLOCK
        if room < HEAD.size:
            place += room
            continue
        _, length, kind = HEAD.unpack_from(data, place)
        place += HEAD.size + length
        part += data[place - length : place]
        if kind in (WHOLE, LAST):
            yield Record.FromString(part)
            part = b""


folder = Path(sys.argv[1])
bundle = bundle_with_run(folder)
log_wandb_run(bundle, folder / "out")
written = log_wandb_run(bundle, folder / "out")
kept = sorted(path.name for path in (folder / "out" / "wandb").glob("offline-run-*"))
found = list(records(next(written.files[0].glob("run-*.wandb"))))
run = next(one.run for one in found if one.HasField("run"))
artefact = next(one.artifact for one in found if one.HasField("artifact"))
updates = [part for one in found if one.HasField("summary") for part in one.summary.update]
summary = {part.key: json.loads(part.value_json) for part in updates if part.key}
print("TOLD" + json.dumps({
    "kept": kept, "name": run.display_name, "project": run.project, "id": run.run_id, "host": run.host, "summary": summary,
    "config": {part.key: json.loads(part.value_json) for part in run.config.update},
    "files": {one.path: Path(one.local_path).exists() for one in artefact.manifest.contents},
    "kinds": sorted({one.WhichOneof("record_type") for one in found}), "sentence": written.sentence,
}))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wandb")
    return json.loads(run_real(LOG_AND_READ, folder, home=folder).split("TOLD")[1])


def test_the_offline_run_holds_metrics_settings_and_files(told, tmp_path):
    bundle = bundle_with_run(tmp_path)
    known = {name: value for name, value in told["summary"].items() if not name.startswith("_")}
    assert known == pytest.approx(run_metrics(bundle))
    assert run_parameters(bundle).items() <= told["config"].items()
    assert told["config"]["weakspot.run_id"] == RUN_ID
    assert told["files"] == {"model-card.md": True, "report.md": True, "slices.csv": True}
    assert (told["name"], told["project"]) == (RUN_ID, "shapes")
    assert "wandb sync" in told["sentence"]


def test_the_same_run_twice_is_one_run(told):
    [folder] = told["kept"]
    assert folder.endswith(told["id"])


def test_nothing_of_the_machine_is_written_down(told):
    assert not {"environment", "stats", "output", "output_raw", "metadata"} & set(told["kinds"])
    assert told["host"] == "unnamed"


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtraError, match=r"weakspot\[trackers\]"):
        log_wandb_run(bundle_with_run(tmp_path), tmp_path / "out")


def test_a_mode_that_writes_nothing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    with pytest.raises(ConfigError, match="writes nothing"):
        log_wandb_run(bundle_with_run(tmp_path), tmp_path / "out")


def test_without_a_run_nothing_is_written(tmp_path):
    with pytest.raises(StoreError, match="no run"):
        log_wandb_run(made_bundle(tmp_path / "images"), tmp_path / "out")
