import io
import tarfile
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.loopback_servers import web_folder

from weakspot.data.locations import (
    UnreadableLocationError,
    explained,
    read_location,
    read_stamped,
)
from weakspot.data.remote import (
    RemoteReading,
    TooLargeFileError,
    WebRequest,
    ask,
    open_web_file,
    reading_as,
)
from weakspot.data.table_source import ManifestSource
from weakspot.data.webdataset import WebDatasetSource

CONTENT = bytes(range(256)) * 40


@pytest.fixture(scope="module")
def server():
    with web_folder() as folder:
        folder.put("a.jpg", CONTENT, tag='"one"')
        folder.put("empty.jpg", b"")
        yield folder


@pytest.fixture(autouse=True)
def quick():
    with reading_as(RemoteReading(cache_megabytes=0, first_wait=0.001, seconds=20)):
        yield


def reason_of(location):
    with pytest.raises(UnreadableLocationError) as caught:
        read_location(location)
    return caught.value


@pytest.mark.parametrize(
    ("habit", "n_requests"), [("busy", 3), ("broken", 3), ("torn", 2), ("whole", 1)]
)
def test_read_location__misbehaving_server(server, habit, n_requests):
    assert read_location(f"{server.address}/{habit}/a.jpg") == CONTENT
    assert server.seen[f"GET /{habit}/a.jpg"] == n_requests


@pytest.mark.parametrize(
    ("path", "reason"), [("secret/a.jpg", "no-permission"), ("none.jpg", "missing-file")]
)
def test_read_location__refusals_are_not_tried_again(server, path, reason):
    assert reason_of(f"{server.address}/{path}").reason == reason
    assert server.seen[f"GET /{path}"] == 1


@pytest.mark.parametrize("habit", ["trickle", "trickled-head"])
def test_read_location__a_byte_at_a_time_ends(server, habit):
    before = server.seen["hung up"]
    with reading_as(RemoteReading(cache_megabytes=0, seconds=0.4)):
        error = reason_of(f"{server.address}/{habit}/a.jpg")
    assert error.reason == "unreachable"
    assert "longer than 0.4 s" in error.detail
    assert server.seen[f"GET /{habit}/a.jpg"] == 1
    for _ in range(200):
        if server.seen["hung up"] > before:
            break
        threading.Event().wait(0.02)
    assert server.seen["hung up"] > before, "the connection was left open"


def test_read_location__a_server_that_wants_an_hour(server):
    assert "too late" in reason_of(f"{server.address}/later/a.jpg").detail
    assert server.seen["GET /later/a.jpg"] == 1


def test_read_location__too_many_bytes(server):
    with reading_as(RemoteReading(cache_megabytes=0, most_bytes=1000)):
        assert reason_of(f"{server.address}/a.jpg").reason == "too-many-bytes"
        assert read_location(f"{server.address}/a.jpg#bytes=0-1000") == CONTENT[:1000]
        assert reason_of(f"{server.address}/a.jpg#bytes=0-1001").reason == "too-many-bytes"


@pytest.mark.parametrize("habit", ["", "whole/"])
def test_read_location__ranges(server, habit):
    assert read_location(f"{server.address}/{habit}a.jpg#bytes=300-20") == CONTENT[300:320]
    assert reason_of(f"{server.address}/{habit}a.jpg#bytes=10230-20").reason == "bad-range"
    assert reason_of(f"{server.address}/{habit}a.jpg#bytes=99999-20").reason == "bad-range"


def test_read_stamped__tells_the_stamp(server):
    assert read_stamped(f"{server.address}/a.jpg")[1] == '10240 "one"'
    assert read_stamped(f"{server.address}/a.jpg#bytes=5-5")[1] == '10240 "one"'


def test_ask__only_headers(server):
    answer = ask(WebRequest(url=f"{server.address}/a.jpg", only_headers=True))
    assert (answer.size, answer.stamp, answer.body) == (10240, '"one"', b"")


def test_ask__unsaid_size_is_bounded_too(server):
    with pytest.raises(TooLargeFileError):
        ask(WebRequest(url=f"{server.address}/a.jpg"), reading=RemoteReading(most_bytes=10))


LONG_CONTENT = bytes(range(256)) * 100


@pytest.fixture
def file_server():
    with web_folder() as folder, reading_as(RemoteReading(cache_megabytes=0, first_wait=0.001)):
        folder.put("a.bin", LONG_CONTENT)
        yield folder


@pytest.mark.parametrize("habit", ["", "whole/", "broken/", "torn/", "busy/"])
def test_open_web_file__read_from_any_position(file_server, habit):
    with open_web_file(f"{file_server.address}/{habit}a.bin", explained, block_bytes=1000) as file:
        assert file.read(3) == LONG_CONTENT[:3]
        file.seek(-5, io.SEEK_END)
        assert file.read() == LONG_CONTENT[-5:]
        file.seek(12_345)
        assert file.read(2_500) == LONG_CONTENT[12_345:14_845]
        file.seek(0)
        assert file.read() == LONG_CONTENT


def test_open_web_file__changed_between_blocks(file_server):
    with open_web_file(f"{file_server.address}/a.bin", explained, block_bytes=1000) as file:
        assert file.read(10) == LONG_CONTENT[:10]
        file_server.put("a.bin", LONG_CONTENT[::-1])
        file.seek(20_000)
        with pytest.raises(UnreadableLocationError, match="changed on the server"):
            file.read(10)


@pytest.mark.parametrize("habit", ["", "whole/", "broken/", "only-get/"])
def test_manifest__over_http_in_every_format(file_server, habit):
    file_server.put("m.csv", b"path,label\na.jpg,cat\nb.jpg,dog\n")
    file_server.put(
        "m.jsonl", b'{"path": "a.jpg", "label": "cat"}\n{"path": "b.jpg", "label": "dog"}\n'
    )
    buffer = io.BytesIO()
    pq.write_table(pa.table({"path": ["a.jpg", "b.jpg"], "label": ["cat", "dog"]}), buffer)
    file_server.put("m.parquet", buffer.getvalue())
    for name in ("m.csv", "m.jsonl", "m.parquet"):
        source = ManifestSource(location=f"{file_server.address}/{habit}{name}")
        assert source.fingerprint() == source.fingerprint()
        found = [(one.location, one.labels) for one in source.read()]
        assert found == [
            (f"{file_server.address}/{habit}a.jpg", ("cat",)),
            (f"{file_server.address}/{habit}b.jpg", ("dog",)),
        ]


def test_webdataset__over_http(file_server):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in (("1.jpg", b"image"), ("1.cls", b"cat")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    file_server.put("train-0.tar", buffer.getvalue())
    source = WebDatasetSource(location=f"{file_server.address}/train-0.tar")
    (sample,) = source.read()
    assert (sample.labels, sample.split) == (("cat",), "train")
    assert sample.location == f"{file_server.address}/train-0.tar#bytes=512-5"
    assert len(source.fingerprint()) == 32
