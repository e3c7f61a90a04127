"""The examples run as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.py"))
SAID = {
    "01_quickstart": "report: report.html",
    "02_export_a_repair": "exported: ",
    "03_every_public_name": "weakspot 0.",
}


def test_examples__it_is_known_what_they_say():
    assert [path.stem for path in EXAMPLES] == sorted(SAID)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples__run_without_error(example, tmp_path):
    command = [sys.executable, "-W", "error", str(example)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stderr
    assert SAID[example.stem] in result.stdout
