"""Object stores on this machine: the three clouds as far as reading from them goes, each spoken to with its own library."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import fsspec

ACCOUNT = "devstoreaccount"
# Made up; a base64 text is all that the library asks for.
ACCOUNT_KEY = "c2VjcmV0LW9mLW5vLWFjY291bnQ="


@contextmanager
def _environment(values: Mapping[str, str], scheme: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    system = fsspec.get_filesystem_class(scheme)
    system.clear_instance_cache()
    try:
        yield
    finally:
        system.clear_instance_cache()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def s3_bucket(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield `s3://bucket` with these files, served by moto."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "secret-of-nobody",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    try:
        with _environment(settings, "s3"):
            system = fsspec.filesystem("s3")
            system.mkdir("bucket")
            for name, data in files.items():
                system.pipe_file(f"bucket/{name}", data)
            yield "s3://bucket"
    finally:
        server.stop()


@contextmanager
def gcs_bucket(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield `gs://bucket` with these files, served by gcp-storage-emulator."""
    from gcp_storage_emulator.server import create_server

    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="bucket")
    server.start()
    settings = {
        "STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{server._api._httpd.server_port}",
        "GOOGLE_CLOUD_PROJECT": "nobody",
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
    }
    try:
        with _environment(settings, "gs"):
            system = fsspec.filesystem("gs")
            for name, data in files.items():
                system.pipe_file(f"bucket/{name}", data)
            yield "gs://bucket"
    finally:
        server.stop()


@contextmanager
def azure_container(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield `az://bucket` with these files, served by the few calls of the Blob service that reading needs."""
    running = _BlobServer(("127.0.0.1", 0), _BlobHandler)
    running.files = dict(files)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    endpoint = f"http://127.0.0.1:{running.server_port}/{ACCOUNT}"
    parts = {
        "DefaultEndpointsProtocol": "http",
        "AccountName": ACCOUNT,
        "AccountKey": ACCOUNT_KEY,
        "BlobEndpoint": endpoint,
    }
    settings = {
        "AZURE_STORAGE_CONNECTION_STRING": ";".join(
            f"{name}={value}" for name, value in parts.items()
        )
    }
    try:
        with _environment(settings, "az"):
            yield "az://bucket"
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


class _BlobServer(ThreadingHTTPServer):
    daemon_threads = True
    files: Mapping[str, bytes]


class _BlobHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        files = cast(_BlobServer, self.server).files
        address = urlsplit(self.path)
        asked = {
            name: values[0]
            for name, values in parse_qs(address.query, keep_blank_values=True).items()
        }
        container, _, name = unquote(address.path).removeprefix(f"/{ACCOUNT}/").partition("/")
        if container != "bucket":
            self.failure(404, "ContainerNotFound")
        elif asked.get("comp") == "list":
            self.answer(200, _listed(files, asked), {"Content-Type": "application/xml"})
        elif not name:
            self.answer(200, b"", {})
        elif name not in files:
            self.failure(404, "BlobNotFound")
        else:
            self.blob(files[name])

    def blob(self, data: bytes) -> None:
        headers = {
            "ETag": _tag(data),
            "Last-Modified": formatdate(1_700_000_000, usegmt=True),
            "x-ms-blob-type": "BlockBlob",
        }
        wanted = self.headers.get("x-ms-range") or self.headers.get("Range")
        if wanted is None or self.command == "HEAD":
            return self.answer(200, data, headers)
        first, last = wanted.removeprefix("bytes=").split("-")
        start, stop = int(first), min(int(last) + 1 if last else len(data), len(data))
        if start >= len(data):
            return self.failure(416, "InvalidRange")
        return self.answer(
            206,
            data[start:stop],
            {**headers, "Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"},
        )

    def failure(self, status: int, code: str) -> None:
        self.answer(
            status, f"<Error><Code>{code}</Code></Error>".encode(), {"x-ms-error-code": code}
        )

    def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(body)),
            "x-ms-version": "2021-12-02",
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


def _listed(files: Mapping[str, bytes], asked: Mapping[str, str]) -> bytes:
    prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
    blobs, folders = [], {}
    for name, data in sorted(files.items()):
        if not name.startswith(prefix):
            continue
        inside, found, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
        if found:
            folders[prefix + inside + delimiter] = None
            continue
        facts = f"<Last-Modified>{formatdate(1_700_000_000, usegmt=True)}</Last-Modified><Etag>{escape(_tag(data))}</Etag>"
        facts += f"<Content-Length>{len(data)}</Content-Length><BlobType>BlockBlob</BlobType>"
        blobs.append(f"<Blob><Name>{escape(name)}</Name><Properties>{facts}</Properties></Blob>")
    named = "".join(f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>" for name in folders)
    inner = f"<Prefix>{escape(prefix)}</Prefix><Blobs>{''.join(blobs)}{named}</Blobs><NextMarker />"
    return f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="bucket">{inner}</EnumerationResults>'.encode()


def _tag(data: bytes) -> str:
    return f'"{hash(data) & 0xFFFFFFFF:x}"'
