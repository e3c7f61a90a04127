"""A real OpenAI-compatible images endpoint on loopback, for generators behind an address."""

import base64
import hashlib
import io
import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from email.parser import BytesParser
from email.policy import HTTP
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from PIL import Image
from tests.models import tiny_pipelines

from weakspot.core.generated import OwnImages
from weakspot.core.registry import part_class
from weakspot.models.endpoint.images import EndpointImageEditor, EndpointImageGenerator
from weakspot.testing.scenes import PAINT, Scene, render


def image_bytes(prompt, seed, size="32x24"):
    """Return a PNG that prompt and seed decide."""
    width, height = (32, 24) if size == "auto" else map(int, size.split("x"))
    number = int.from_bytes(hashlib.sha256(f"{prompt}|{seed}".encode()).digest()[:8], "big")
    pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format="PNG")
    return stream.getvalue()


def answer_of(**made) -> bytes:
    return json.dumps({"created": 1, "data": [made]}).encode()


def bytes_of(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def read_sent(kind: str, sent: bytes) -> tuple[dict[str, object], dict[str, bytes]]:
    """Return the fields and the files of a request, whether it is JSON or a form."""
    if not kind.startswith("multipart/form-data"):
        return json.loads(sent), {}
    form = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + sent)
    fields, files = {}, {}
    for part in form.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if part.get_filename():
            files[name] = content
        else:
            fields[name] = content.decode()
    return fields, files


class ImageServer:
    """Draws what prompt and seed decide, after misbehaving as told.

    `misbehave` holds steps (status, headers, content) that are taken before it behaves; `answers` holds whole answers by prompt;
    `files` holds what is behind addresses on the same host.
    """

    def __init__(self):
        self.misbehave = []
        self.answers = {}
        self.files = {}
        self.bodies = []
        self.sent_files = []
        self.fetched = []
        self.authorisations = []
        self.paths = []
        self.refused_fields = ()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.draw(self)

            def do_GET(self):
                outer.give(self)

            def log_message(self, *_arguments):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    @property
    def host(self):
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def url(self):
        return f"{self.host}/v1"

    def close(self):
        self._http.shutdown()
        self._http.server_close()

    def draw(self, handler):
        sent = handler.rfile.read(int(handler.headers["Content-Length"]))
        body, files = read_sent(handler.headers["Content-Type"], sent)
        with self._lock:
            self.sent_files.append(files)
            self.bodies.append(body)
            self.paths.append(handler.path)
            self.authorisations.append(handler.headers.get("Authorization"))
            step = self.misbehave.pop(0) if self.misbehave else self.answers.get(body["prompt"])
        refused = next((name for name in self.refused_fields if name in body), None)
        if step is None and refused is not None:
            step = (
                400,
                {},
                json.dumps({"error": {"message": f"Unknown parameter: '{refused}'."}}).encode(),
            )
        drawn = image_bytes(body["prompt"], body.get("seed"), body["size"])
        self._answer(handler, step or (200, {}, answer_of(b64_json=bytes_of(drawn))))

    def give(self, handler):
        with self._lock:
            self.fetched.append((handler.path, handler.headers.get("Authorization")))
            steps = self.files.get(handler.path, [(404, {}, b"")])
            step = steps.pop(0) if len(steps) > 1 else steps[0]
        self._answer(handler, step)

    @staticmethod
    def _answer(handler, step):
        status, headers, content = step
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


def image_server(stack: ExitStack) -> ImageServer:
    server = ImageServer()
    stack.callback(server.close)
    return server


def endpoint_images(_folder: Path, stack: ExitStack):
    return partial(
        EndpointImageGenerator, url=image_server(stack).url, model="tiny", size="32x24", n_retries=0
    )


def _part(role: str, name: str, **options: object) -> Callable[[], object]:
    return lambda: part_class(role, name)(**options)


def _diffusers(folder: Path, _stack: ExitStack) -> Callable[[], object]:
    model = tiny_pipelines.save_stable_diffusion(folder / "model", checker="passes")
    return _part("image_generators", "diffusers", model=model, device="cpu", steps=2, batch_size=2)


def _unclip(folder: Path, _stack: ExitStack) -> Callable[[], object]:
    model = tiny_pipelines.save_unclip_from_words(folder / "model")
    return _part("image_generators", "unclip", model=model, device="cpu", steps=2, batch_size=2)


def _edit(folder: Path, _stack: ExitStack) -> Callable[[], object]:
    written = "StableDiffusionInstructPix2PixPipeline"
    model = tiny_pipelines.save_stable_diffusion(folder / "model", written=written)
    made = _part("image_generators", "edit", model=model, device="cpu", steps=2, side=32)
    return lambda: made().with_images(OWN_SHAPES)  # type: ignore[attr-defined]


def _edit_endpoint(_folder: Path, stack: ExitStack) -> Callable[[], object]:
    made = partial(EndpointImageEditor, url=image_server(stack).url, model="tiny", side=32)
    return lambda: made(n_retries=0).with_images(OWN_SHAPES)


def _ids(class_name: str) -> list[str]:
    return [f"{class_name} {number}" for number in range(4)] if class_name else []


def _shape(sample_id: str) -> Image.Image:
    kind, _, instance = sample_id.partition(" ")
    scene = Scene(kinds=(kind,), colour="blue", size="large", instance=int(instance))
    return render(scene, side=64, marked=False)


def _none(_: str) -> None:
    return None


def _nothing(_: str) -> list[str]:
    return []


OWN_SHAPES = OwnImages(
    class_names=("disc", "star"),
    objects=_ids,
    backgrounds=_nothing,
    background_words=(),
    image=_shape,
    mask=_none,
    digest="shapes",
)


def _shapes(folder: Path) -> Path:
    for kind in ("disc", "star"):
        (folder / "shapes" / kind).mkdir(parents=True, exist_ok=True)
        for instance in range(3):
            scene = Scene(kinds=(kind,), colour="blue", size="large", instance=instance)
            image = render(scene, side=128, marked=False)
            image.save(folder / "shapes" / kind / f"{instance}.png")
            paint = np.linalg.norm(np.asarray(image).astype(float) - PAINT["blue"], axis=2) < 60
            Image.fromarray(paint).save(folder / "shapes" / kind / f"{instance}_mask.png")
    return folder / "shapes"


def _compose(folder: Path, _stack: ExitStack) -> Callable[[], object]:
    return _part("image_generators", "compose", images=str(_shapes(folder)), side=64)


BUILDERS = {
    ("image_generators", "compose"): _compose,
    ("image_generators", "diffusers"): _diffusers,
    ("image_generators", "edit"): _edit,
    ("image_generators", "edit-endpoint"): _edit_endpoint,
    ("image_generators", "endpoint"): endpoint_images,
    ("image_generators", "unclip"): _unclip,
}
