import subprocess
import sys

import pytest
from tests.cloud_servers import azure_container, gcs_bucket, s3_bucket

from weakspot.core.errors import MissingExtraError
from weakspot.data.locations import (
    UnreadableLocationError,
    file_facts,
    is_folder,
    is_there,
    list_files,
    match_files,
    open_location,
    read_location,
)
from weakspot.data.open_source import open_source
from weakspot.data.remote import RemoteReading, is_cloud, reading_as

FILES = {
    "set/cat/1.jpg": b"first",
    "set/cat/2.jpg": b"second image",
    "set/dog/old/3.jpg": b"third",
    "set/.hidden/4.jpg": b"hidden",
    "empty.jpg": b"",
    "table.csv": b"path,label\nset/cat/1.jpg,cat\n",
}
LEFT_OUT = """
import sys
sys.modules["s3fs"] = None
from weakspot.data.locations import read_location
read_location("s3://bucket/a.jpg")
"""


@pytest.fixture(
    scope="module", params=[s3_bucket, gcs_bucket, azure_container], ids=["s3", "gcs", "azure"]
)
def bucket(request):
    with (
        request.param(FILES) as location,
        reading_as(RemoteReading(cache_megabytes=0, first_wait=0.001)),
    ):
        yield location


def test_read_location__whole_and_range(bucket):
    assert is_cloud(bucket)
    assert read_location(f"{bucket}/set/cat/2.jpg") == b"second image"
    assert read_location(f"{bucket}/set/cat/2.jpg#bytes=7-4") == b"imag"
    assert read_location(f"{bucket}/empty.jpg") == b""


def test_read_location__missing_and_too_large(bucket):
    for name in ("none.jpg", "set/cat/2.jpg/none"):
        with pytest.raises(UnreadableLocationError) as caught:
            read_location(f"{bucket}/{name}")
        assert caught.value.reason == "missing-file"
    with (
        reading_as(RemoteReading(cache_megabytes=0, most_bytes=5)),
        pytest.raises(UnreadableLocationError) as caught,
    ):
        read_location(f"{bucket}/set/cat/2.jpg")
    assert caught.value.reason == "too-many-bytes"
    assert read_location(f"{bucket}/set/cat/1.jpg") == b"first"


def test_list_files__sorted_with_stamps(bucket):
    found = list(list_files(f"{bucket}/set"))
    assert [file.relative for file in found] == ["cat/1.jpg", "cat/2.jpg", "dog/old/3.jpg"]
    assert [file.size for file in found] == [5, 12, 5]
    assert [file.location for file in found] == [f"{bucket}/set/{file.relative}" for file in found]
    assert all(file.lasting_stamp for file in found)
    assert len({file.lasting_stamp for file in found}) == 3
    assert file_facts(found[1].location).lasting_stamp == found[1].lasting_stamp


def test_is_there__files_folders_and_nothing(bucket):
    assert is_folder(f"{bucket}/set/cat")
    assert is_there(f"{bucket}/set/cat")
    assert is_there(f"{bucket}/set/cat/1.jpg")
    assert not is_folder(f"{bucket}/set/cat/1.jpg")
    assert not is_there(f"{bucket}/set/cow")


def test_match_files__pattern(bucket):
    found = match_files(f"{bucket}/set/cat/*.jpg")
    assert [name.rpartition("/")[2] for name in found] == ["1.jpg", "2.jpg"]
    assert read_location(found[0]) == b"first"


def test_open_source__image_folder_and_manifest(bucket):
    folder = open_source(f"{bucket}/set")
    assert folder.kind == "image-folder"
    assert [(one.key, one.labels) for one in folder.read()] == [
        ("cat/1.jpg", ("cat",)),
        ("cat/2.jpg", ("cat",)),
        ("dog/old/3.jpg", ("dog",)),
    ]
    (row,) = open_source(f"{bucket}/table.csv", kind="manifest").read()
    assert read_location(row.location) == b"first"


def test_open_location__seeks(bucket):
    with open_location(f"{bucket}/set/cat/2.jpg") as file:
        file.seek(7)
        assert file.read() == b"image"


def test_read_location__kept_on_this_machine(bucket, tmp_path):
    with reading_as(RemoteReading(cache_folder=str(tmp_path))):
        assert read_location(f"{bucket}/set/cat/1.jpg") == b"first"
        (kept,) = tmp_path.rglob("*.image")
        assert kept.read_bytes().endswith(b"first")


def test_read_location__the_library_is_not_installed():
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OUT], capture_output=True, text=True, check=False
    )
    assert MissingExtraError.__name__ in done.stderr
    assert "need the library 's3fs'. To do: pip install 'weakspot[cloud]'" in done.stderr


def test_read_location__without_credentials(monkeypatch):
    import s3fs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    s3fs.S3FileSystem.clear_instance_cache()
    try:
        with (
            reading_as(RemoteReading(cache_megabytes=0, first_wait=0.001)),
            pytest.raises(UnreadableLocationError) as caught,
        ):
            read_location("s3://bucket/a.jpg")
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
    assert caught.value.reason == "no-permission"
