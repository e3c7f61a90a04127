"""Killed with SIGKILL at random instants of ingest, embed, discover, repair and generate: the benchmark with fewer kills."""

import os
import re
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "kills.py"
N_KILLS = 10


def test_kills__every_stage__nothing_is_lost_or_doubled():
    command = [
        sys.executable,
        str(BENCHMARK),
        "--kills",
        str(N_KILLS),
        "--rows",
        "1500",
        "--seed",
        "5",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kills = {
        stage: int(number)
        for stage, number in re.findall(
            r"^\| (\w+) \| (\d+) \| [\d.]+ \|$", done.stdout, re.MULTILINE
        )
    }
    assert set(kills) == {"ingest", "embed", "discover", "repair", "generate"}
    assert min(kills.values()) >= N_KILLS // 5
    rows = dict(re.findall(r"^\| ([\w ]+) \| (\d+) \| 0 \| 0 \|$", done.stdout, re.MULTILINE))
    assert {name for name, number in rows.items() if int(number)} >= {
        "samples",
        "embeddings",
        "predictions",
        "slices",
        "repairs",
        "generated files",
    }
    assert "anything else that differs: nothing" in done.stdout
