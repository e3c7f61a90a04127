"""Three times the samples take at most three times the memory and work: the whole loop, in processes of its own, at two sizes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("scale_child.py")
SMALL, LARGE = 10_000, 30_000
MAX_BYTES_A_ROW = 8_000
MAX_GROWTH_OF_READS = 1.5 * LARGE / SMALL


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict]:
    found = {}
    for n_rows in (SMALL, LARGE):
        folder = tmp_path_factory.mktemp(f"rows-{n_rows}")
        done = subprocess.run(
            [sys.executable, str(CHILD), str(folder), str(n_rows)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found[n_rows] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_loop_is_whole_at_both_sizes(measured):
    for told in measured.values():
        assert told["n_confirmed"] >= 1
        assert {"slice-balanced", "plain", "random", "confidence", "class-name"} == set(
            told["arms"]
        )


def test_memory_grows_by_a_bounded_number_of_bytes_a_row(measured):
    further = measured[LARGE]["bytes"] - measured[SMALL]["bytes"]
    assert further / (LARGE - SMALL) < MAX_BYTES_A_ROW


def test_numbers_read_of_embeddings_grow_with_the_rows(measured):
    assert measured[LARGE]["n_read"] < MAX_GROWTH_OF_READS * measured[SMALL]["n_read"]
