"""A disk that is full, and one that cannot be written: what is said, and that nothing is lost."""

import json
import shlex

import pytest
from tests.build import planted_settings
from tests.faults.own_disk import on_own_disk

from weakspot.testing.planted import plant, rare

N_SAMPLES = 400


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    manifest = plant(rare(0.01), N_SAMPLES, seed=3).write_images(folder).manifest
    path = folder / "weakspot.toml"
    path.write_text(
        planted_settings(N_SAMPLES).replace('"manifest.csv"', json.dumps(str(manifest)))
    )
    return shlex.quote(str(path))


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def unhindered(settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unhindered")
    done = on_own_disk(folder, f"cp {settings} . && weakspot run --json && du -sk .weakspot >&2")
    assert done.returncode == 0, done.stderr
    kilobytes = int(done.stderr.strip().splitlines()[-1].split()[0])
    return found_in(done.stdout), kilobytes


def found_in(output):
    """What was found, without times and ids made of them."""
    record = json.loads(output)
    repairs = [
        [(arm["arm"], arm["changes"]) for arm in prediction["arms"]]
        for prediction in record["repairs"]
    ]
    return record["slices"], record["evidence"], record["classifier"], repairs


@pytest.mark.parametrize("share", [0.02, 0.6, 0.95])
def test_run__disk_full_at_some_point__says_so_and_goes_on_when_there_is_room(
    settings, disk, unhindered, share
):
    expected, kilobytes = unhindered
    script = f"""
    cp {settings} . && resize {int(share * kilobytes) + 8}
    weakspot run > /dev/null; echo "exit $?" >&2
    resize 65536
    weakspot run --json
    """
    done = on_own_disk(disk, script)
    first = done.stderr.split("exit ")[0]
    assert "exit 2" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert "no space" in first.lower()
    assert "to do:" in first
    assert done.returncode == 0, done.stderr
    assert found_in(done.stdout) == expected


def test_run__read_only_folder__says_so_and_loses_nothing(settings, disk, unhindered):
    script = f"""
    cp {settings} . && weakspot ingest > /dev/null && freeze
    weakspot run > /dev/null; echo "exit $?" >&2
    mount -o remount,rw .
    weakspot run --json
    """
    done = on_own_disk(disk, script)
    assert "exit 2" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert "read-only" in done.stderr.lower()
    assert found_in(done.stdout) == unhindered[0]


def test_init__read_only_folder__says_so(disk):
    done = on_own_disk(
        disk, "mkdir photos; freeze; weakspot init project --data photos; echo exit $?"
    )
    assert "exit 2" in done.stdout
    assert "read-only" in done.stderr.lower()
    assert "Traceback" not in done.stderr
