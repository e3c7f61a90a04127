"""A real endpoint on loopback that gives masks: what is brighter than the middle grey is the object."""

import base64
import io
import json
import threading
from contextlib import ExitStack
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from PIL import Image

from weakspot.models.endpoint.segmenter import EndpointSegmenter


class MaskServer:
    """`misbehave` holds answers (status, content) that are given before it behaves."""

    def __init__(self):
        self.misbehave = []
        self.requests = []
        self.authorisations = []
        self.quality = 0.9
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.answer(self)

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1/segment"
        threading.Thread(
            target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def answer(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        self.requests.append(body)
        self.authorisations.append(handler.headers.get("Authorization"))
        status, content = self.misbehave.pop(0) if self.misbehave else (200, self._masks(body))
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def _masks(self, body):
        return json.dumps(
            {"predictions": [self._mask(one["image"]["b64"]) for one in body["instances"]]}
        ).encode()

    def _mask(self, encoded):
        image = Image.open(io.BytesIO(base64.b64decode(encoded))).convert("L")
        mask = image.point(lambda value: 255 if value > 100 else 0)
        if mask.getbbox() is None:
            return {"mask": None}
        stream = io.BytesIO()
        mask.save(stream, format="PNG")
        return {
            "mask": {"b64": base64.b64encode(stream.getvalue()).decode()},
            "quality": self.quality,
        }


def mask_server(stack: ExitStack) -> MaskServer:
    server = MaskServer()
    stack.callback(server.http.server_close)
    stack.callback(server.http.shutdown)
    return server


def _endpoint(_folder, stack):
    return partial(EndpointSegmenter, url=mask_server(stack).url, n_retries=0)


BUILDERS = {("segmenters", "endpoint"): _endpoint}
