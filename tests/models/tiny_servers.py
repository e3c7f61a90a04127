"""Real endpoints on loopback that behave as real services do, after misbehaving as told: chat, images, masks, classification."""

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

from weakspot.core.registry import part_class

SILENCE = 0


class TinyServer:
    """Answers every request with `reply(body)`.

    `misbehave` holds steps (status, headers, content) that are taken before it behaves, `always` one that is always taken; status
    SILENCE never answers. What was sent is in `bodies`, `sent_files`, `paths` and `authorisations`.
    """

    path = ""

    def __init__(self):
        self.misbehave, self.always, self.refused_fields = [], None, ()
        self.bodies, self.sent_files, self.paths, self.authorisations = [], [], [], []
        self.closing, self.lock = threading.Event(), threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.draw(self)

            def do_GET(self):
                outer.give(self)

            def log_message(self, *_arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(
            target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    @property
    def host(self):
        return f"http://127.0.0.1:{self.http.server_port}"

    @property
    def url(self):
        return f"{self.host}{self.path}"

    def close(self):
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()

    def reply(self, body):
        """Return the content of the answer, or a whole step."""
        raise NotImplementedError

    def draw(self, handler):
        sent = handler.rfile.read(int(handler.headers["Content-Length"]))
        body, files = read_sent(handler.headers["Content-Type"], sent)
        with self.lock:
            self.bodies.append(body)
            self.sent_files.append(files)
            self.paths.append(handler.path)
            self.authorisations.append(handler.headers.get("Authorization"))
            step = self.misbehave.pop(0) if self.misbehave else self.always
        refused = next((name for name in self.refused_fields if name in body), None)
        if step is None and refused is not None:
            said = {"error": {"message": f"Unsupported parameter: '{refused}'."}}
            step = (400, {}, json.dumps(said).encode())
        answer = step or self.reply(body)
        self._answer(handler, answer if isinstance(answer, tuple) else (200, {}, answer))

    def _answer(self, handler, step):
        status, headers, content = step
        if status == SILENCE:
            self.closing.wait()
            return
        try:
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
        except OSError:
            pass


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


def bytes_of(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def opened(text: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(text, validate=True)))


def png(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format="PNG")
    return stream.getvalue()


class ChatServer(TinyServer):
    """Says how red an image is, or writes JSON."""

    path = "/v1"

    def reply(self, body):
        content = body["messages"][0]["content"]
        if not isinstance(content, str):
            words, image = content
            red = int(
                np.asarray(opened(image["image_url"]["url"].partition(",")[2]))[..., 0].mean()
            )
            is_caption = words["text"].startswith(("Describe", "This"))
            return chat_answer(f'"An image with red {red}."' if is_caption else f"red {red}")
        if "response_format" in body:
            return chat_answer('{"attributes": ["colour", "size"]}')
        if "schema" in content:
            return chat_answer('```json\n{"attributes": ["colour", "size"]}\n```')
        return chat_answer(f"words {body.get('seed')}")


def chat_answer(text, *, finish_reason="stop") -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}).encode()


class ImageServer(TinyServer):
    """Draws what prompt and seed decide; `answers` holds whole steps by prompt, `files` what is behind addresses on the same host."""

    path = "/v1"

    def __init__(self):
        super().__init__()
        self.answers, self.files, self.fetched = {}, {}, []

    def reply(self, body):
        if body["prompt"] in self.answers:
            return self.answers[body["prompt"]]
        drawn = image_bytes(body["prompt"], body.get("seed"), body["size"])
        return answer_of(b64_json=bytes_of(drawn))

    def give(self, handler):
        with self.lock:
            self.fetched.append((handler.path, handler.headers.get("Authorization")))
            steps = self.files.get(handler.path, [(404, {}, b"")])
            step = steps.pop(0) if len(steps) > 1 else steps[0]
        self._answer(handler, step)


def image_bytes(prompt, seed, size="32x24"):
    """Return a PNG that prompt and seed decide."""
    width, height = (32, 24) if size == "auto" else map(int, size.split("x"))
    number = int.from_bytes(hashlib.sha256(f"{prompt}|{seed}".encode()).digest()[:8], "big")
    pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return png(Image.fromarray(pixels))


def answer_of(**made) -> bytes:
    return json.dumps({"created": 1, "data": [made]}).encode()


class MaskServer(TinyServer):
    """Gives masks: what is brighter than the middle grey is the object."""

    path = "/v1/segment"
    quality = 0.9

    def reply(self, body):
        masks = [self._mask(one["image"]["b64"]) for one in body["instances"]]
        return json.dumps({"predictions": masks}).encode()

    def _mask(self, encoded):
        mask = opened(encoded).convert("L").point(lambda value: 255 if value > 100 else 0)
        if mask.getbbox() is None:
            return {"mask": None}
        return {"mask": {"b64": bytes_of(png(mask))}, "quality": self.quality}


class ClassServer(TinyServer):
    """Says how red an image is; `answer` is what it says instead, `meeting` makes requests wait for each other."""

    path = "/v1/predict"

    def __init__(self):
        super().__init__()
        self.answer = self.meeting = None
        self.under_way = self.most_under_way = 0

    def reply(self, body):
        with self.lock:
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if self.meeting is not None:
                self.meeting.wait(timeout=20)
            return self._content(body)
        finally:
            # Before the answer leaves: with it in hand the client may ask again at once.
            with self.lock:
                self.under_way -= 1

    def _content(self, body):
        if self.answer is not None:
            is_raw = isinstance(self.answer, bytes)
            return self.answer if is_raw else json.dumps(self.answer).encode()
        images = [opened(one["image"]["b64"]).convert("RGB") for one in body["instances"]]
        return json.dumps({"predictions": [self._prediction(one) for one in images]}).encode()

    def _prediction(self, image):
        red = float(np.asarray(image)[:, :, 0].mean()) / 255
        return {"probabilities": {"red": red, "blue": 1 - red}, "features": [red, image.width]}


class ColourServer(ClassServer):
    """Says the probabilities of four classes by the mean colour, in a list."""

    def _prediction(self, image):
        means = np.asarray(image).reshape(-1, 3).mean(axis=0) / 64.0
        powers = np.exp([*means, 2.0])
        return {"probabilities": (powers / powers.sum()).tolist()}


SERVERS = {"chat": ChatServer, "images": ImageServer, "masks": MaskServer, "classes": ClassServer}


def served(kind: type[TinyServer], stack: ExitStack) -> TinyServer:
    server = kind()
    stack.callback(server.close)
    return server


def _part(role: str, kind: type[TinyServer], **options: object):
    def build(_folder: Path, stack: ExitStack) -> Callable[[], object]:
        server = served(kind, stack)
        return partial(part_class(role, "endpoint"), url=server.url, n_retries=0, **options)

    return build


_NAMES = ("disc", "square", "triangle", "star")
BUILDERS = {
    ("captioners", "endpoint"): _part("captioners", ChatServer, model="tiny"),
    ("classifiers", "endpoint"): _part(
        "classifiers", ColourServer, class_names=_NAMES, batch_size=4
    ),
    ("image_generators", "endpoint"): _part(
        "image_generators", ImageServer, model="tiny", size="32x24"
    ),
    ("question_answerers", "endpoint"): _part("question_answerers", ChatServer, model="tiny"),
    ("segmenters", "endpoint"): _part("segmenters", MaskServer),
    ("text_generators", "endpoint"): _part("text_generators", ChatServer, model="tiny"),
}
