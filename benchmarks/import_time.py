"""Time of `import weakspot` and `weakspot --help` in fresh processes; the goal is less than 0.5 s each.

python benchmarks/import_time.py
"""

import json
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python (for comparison)": [sys.executable, "-c", "pass"],
    "import weakspot": [sys.executable, "-c", "import weakspot"],
    "weakspot --help": [sys.executable, "-m", "weakspot", "--help"],
}


def main():
    for name, command in COMMANDS.items():
        seconds = []
        for _ in range(7):
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - started)
        found = {
            "command": name,
            "best_seconds": round(min(seconds), 3),
            "median_seconds": round(statistics.median(seconds), 3),
        }
        print(json.dumps(found))


if __name__ == "__main__":
    main()
