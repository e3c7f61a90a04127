import json
import subprocess
import sys

import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.registry import ROLES, part_class, registered


def test_registered__built_ins_have_plain_names_in_order():
    names = list(registered("repairers"))
    assert names == sorted(names)
    assert {"slice-balanced", "pool-random", "worst-slice"} <= set(names)


@pytest.mark.parametrize("role", sorted(set(ROLES) - {"rules"}))  # ours are in core.rules
def test_registered__every_role_has_a_part(role):
    assert registered(role)


def test_registered__unknown_role():
    with pytest.raises(ConfigError, match=r"no role 'painters'.*'classifiers'"):
        registered("painters")


def test_part_class__gives_the_class():
    assert part_class("verifiers", "holdout").__name__ == "HoldoutVerifier"


def test_part_class__unknown_name_lists_those_there_are():
    with pytest.raises(
        ConfigError,
        match=r"no question answerer called 'oracle'.*\['endpoint', 'planted', 'transformers'\]",
    ):
        part_class("question_answerers", "oracle")


def test_registered__nothing_is_imported_by_looking():
    script = (
        "import json, sys\nfrom weakspot.core.registry import ROLES, registered\n"
        "[registered(role) for role in ROLES]\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('weakspot.models')]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("nowhere_at_all:Part", "No module named"),
        ("json:Part", "has no attribute 'Part'"),
        ("broken_module:Part", "invalid syntax"),
    ],
)
def test_part_class__a_part_that_cannot_be_imported_is_named(tmp_path, monkeypatch, value, said):
    (tmp_path / "broken_module.py").write_text("def (:\n")
    information = tmp_path / "other_parts-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: other-parts\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(f"[weakspot.engines]\nlost = {value}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registered.cache_clear()
    try:
        assert "other-parts/lost" in registered("engines")
        with pytest.raises(
            ConfigError, match=rf"engine 'other-parts/lost' cannot be imported: .*{said}.*Reinstall"
        ):
            part_class("engines", "other-parts/lost")
    finally:
        registered.cache_clear()
