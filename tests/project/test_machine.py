import sys

from weakspot.project.doctor import (
    free_memory_bytes,
    import_problems,
    processor_name,
)


def test_import_problems__survives_a_crash(tmp_path, monkeypatch):
    (tmp_path / "fine_module.py").write_text("")
    (tmp_path / "failing_module.py").write_text("raise RuntimeError('operator does not exist')")
    (tmp_path / "crashing_module.py").write_text("import os\nos._exit(3)")
    (tmp_path / "later_module.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = import_problems(
        ["fine_module", "failing_module", "absent_module", "crashing_module", "later_module"]
    )
    assert found == {
        "failing_module": "RuntimeError: operator does not exist",
        "crashing_module": "the process ended with code 3",
    }


def test_import_problems__too_slow(tmp_path, monkeypatch):
    (tmp_path / "sleeping_module.py").write_text("import time\ntime.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert import_problems(["sleeping_module"], timeout_seconds=0.5) == {
        "sleeping_module": "no end in 0.5 seconds"
    }


def test_free_memory_bytes__of_a_file(tmp_path):
    (tmp_path / "memory").write_text("MemTotal: 4096 kB\nMemAvailable:    2048 kB\n")
    (tmp_path / "empty").write_text("")
    assert free_memory_bytes(tmp_path / "memory") == 2_097_152
    assert free_memory_bytes(tmp_path / "empty") is None
    assert free_memory_bytes(tmp_path / "absent") is None


def test_processor_name__has_a_count():
    assert processor_name().endswith("processors")
