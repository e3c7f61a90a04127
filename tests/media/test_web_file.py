import io
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.loopback_servers import web_folder

from weakspot.ingest.manifest import ManifestSource
from weakspot.ingest.webdataset import WebDatasetSource
from weakspot.media.locations import UnreadableLocationError, explained, open_location
from weakspot.media.remote import RemoteReading, reading_as
from weakspot.media.web_file import open_web_file

CONTENT = bytes(range(256)) * 100


@pytest.fixture
def server():
    with web_folder() as folder, reading_as(RemoteReading(cache_megabytes=0, first_wait=0.001)):
        folder.put("a.bin", CONTENT)
        yield folder


@pytest.mark.parametrize("habit", ["", "whole/", "broken/", "torn/", "busy/"])
def test_open_web_file__read_from_any_position(server, habit):
    with open_web_file(f"{server.address}/{habit}a.bin", explained, block_bytes=1000) as file:
        assert file.read(3) == CONTENT[:3]
        file.seek(-5, io.SEEK_END)
        assert file.read() == CONTENT[-5:]
        file.seek(12_345)
        assert file.read(2_500) == CONTENT[12_345:14_845]
        file.seek(0)
        assert file.read() == CONTENT


def test_open_web_file__changed_between_blocks(server):
    with open_web_file(f"{server.address}/a.bin", explained, block_bytes=1000) as file:
        assert file.read(10) == CONTENT[:10]
        server.put("a.bin", CONTENT[::-1])
        file.seek(20_000)
        with pytest.raises(UnreadableLocationError, match="changed on the server"):
            file.read(10)


def test_open_location__nothing_there(server):
    with pytest.raises(UnreadableLocationError) as caught:
        open_location(f"{server.address}/none.csv")
    assert caught.value.reason == "missing-file"


@pytest.mark.parametrize("habit", ["", "whole/", "broken/", "only-get/"])
def test_manifest__over_http_in_every_format(server, habit):
    server.put("m.csv", b"path,label\na.jpg,cat\nb.jpg,dog\n")
    server.put("m.jsonl", b'{"path": "a.jpg", "label": "cat"}\n{"path": "b.jpg", "label": "dog"}\n')
    buffer = io.BytesIO()
    pq.write_table(pa.table({"path": ["a.jpg", "b.jpg"], "label": ["cat", "dog"]}), buffer)
    server.put("m.parquet", buffer.getvalue())
    for name in ("m.csv", "m.jsonl", "m.parquet"):
        source = ManifestSource(location=f"{server.address}/{habit}{name}")
        assert source.fingerprint() == source.fingerprint()
        found = [(one.location, one.labels) for one in source.read()]
        assert found == [(f"{server.address}/{habit}a.jpg", ("cat",)), (f"{server.address}/{habit}b.jpg", ("dog",))]


def test_webdataset__over_http(server):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in (("1.jpg", b"picture"), ("1.cls", b"cat")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    server.put("train-0.tar", buffer.getvalue())
    source = WebDatasetSource(location=f"{server.address}/train-0.tar")
    (sample,) = source.read()
    assert (sample.labels, sample.split) == (("cat",), "train")
    assert sample.location == f"{server.address}/train-0.tar#bytes=512-7"
    assert len(source.fingerprint()) == 32
