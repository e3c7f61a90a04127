"""The list of vital lines is about lines that are there, guarded at home; `tools/mutants.py` runs them."""

from pathlib import Path

import pytest
from tools.mutants import PACKAGES, ROOT, Mutant, home_of, read_mutants, run_all

MUTANTS = read_mutants()
PACKAGE = PACKAGES[0]
SOURCE = "def is_small(number):\n    return number <= 3\n"
TEST = (
    "from weakspot.sizes import is_small\n\n\n"
    "def test_is_small__three():\n    assert is_small(3)\n\n\n"
    "def test_is_small__two():\n    assert is_small(2)\n"
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[one.name for one in MUTANTS])
def test_mutants__line_is_there_and_its_test_is_at_home(mutant):
    content = (ROOT / mutant.file).read_text()
    assert content.count(mutant.text) == 1
    if mutant.file.endswith(".py"):
        compile(mutant.broken(content), mutant.file, "exec")
    assert mutant.test.startswith(home_of(mutant.file))
    assert (ROOT / mutant.test).is_file()


def test_mutants__names_are_different():
    assert len({one.name for one in MUTANTS}) == len(MUTANTS) >= 30


@pytest.fixture
def checkout(tmp_path):
    files = {
        f"{PACKAGE}/__init__.py": "",
        f"{PACKAGE}/pytest_plugin.py": "",
        f"{PACKAGE}/sizes.py": SOURCE,
        "tests/test_sizes.py": TEST,
        "pytest.ini": "[pytest]\naddopts = -q\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def test_run_all__killed_survived_and_not_found(checkout: Path):
    facts = {"file": f"{PACKAGE}/sizes.py", "test": "tests/test_sizes.py"}
    listed = [
        Mutant(name="strict", text="<= 3", by="< 3", **facts),
        Mutant(name="unseen", text="<= 3", by="< 3", only="two", **facts),
        Mutant(name="gone", text=">= 3", by="< 3", **facts),
        Mutant(name="no test", text="<= 3", by="< 3", only="none", **facts),
    ]
    found = list(run_all(listed, root=checkout, n_workers=1, with_baseline=False))
    assert [one.status for one in found] == ["killed", "survived", "not found", "broken tests"]
    assert (checkout / PACKAGE / "sizes.py").read_text() == SOURCE


def test_run_all__tests_that_fail_without_any_change__refused(checkout: Path):
    (checkout / PACKAGE / "sizes.py").write_text(SOURCE.replace("<=", ">"))
    mutant = Mutant(
        name="any", file=f"{PACKAGE}/sizes.py", text="> 3", by="< 3", test="tests/test_sizes.py"
    )
    with pytest.raises(SystemExit, match="fails on the unchanged package"):
        list(run_all([mutant], root=checkout, n_workers=1))
