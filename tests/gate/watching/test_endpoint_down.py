"""A watcher whose model stands behind a real endpoint on loopback that is down, comes up, and is asked only what is new."""

import base64
import csv
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

from weakspot.gate.watch import RoundRequest, Watcher

SETTINGS = """\
[data]
source = "manifest.csv"
[classifier]
name = "endpoint"
options = {{url = "{url}", class_names = ["blue", "red"], n_retries = 0, first_wait_seconds = 0.01}}
[embedder]
name = "given-embeddings"
options = {{path = "embeddings.npy"}}
[attributes]
use_vocabulary = false
use_properties = false
columns = ["kind"]
[discover]
methods = ["attributes"]
"""


@pytest.fixture
def endpoint():
    """An endpoint that says how red an image is, as long as it is up; counts the images it was asked."""
    state = {"is_up": False, "n_asked": 0}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            images = [
                Image.open(io.BytesIO(base64.b64decode(one["image"]["b64"])))
                for one in body["instances"]
            ]
            shares = [np.asarray(image.convert("RGB"))[..., 0].mean() / 255 for image in images]
            content = json.dumps(
                {"predictions": [{"probabilities": [1 - share, share]} for share in shares]}
            ).encode()
            self.send_response(200 if state["is_up"] else 503)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            state["n_asked"] += len(images) if state["is_up"] else 0

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/predict", state
    server.shutdown()
    server.server_close()
    thread.join()


def _write(folder, url, n_samples):
    folder.mkdir(exist_ok=True)
    with (folder / "manifest.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["path", "label", "split", "kind"])
        for number in range(n_samples):
            red = number if number % 2 else 255 - number
            Image.new("RGB", (8, 8), (red, 0, 255 - red)).save(folder / f"{number}.png")
            writer.writerow(
                [f"{number}.png", "blue" if number % 2 else "red", "validation", "plain"]
            )
    np.save(folder / "embeddings.npy", np.eye(n_samples, 4, dtype=np.float32) + 0.5)
    (folder / "weakspot.toml").write_text(SETTINGS.format(url=url))
    return folder


def test_watcher__an_endpoint_that_is_down_ends_a_turn_and_nothing_is_asked_twice(
    endpoint, tmp_path
):
    url, state = endpoint
    folder = _write(tmp_path / "tiles", url, 40)
    told, pauses = [], []

    def pause(seconds):
        pauses.append(seconds)
        state["is_up"] = True
        if len(pauses) == 2:
            _write(folder, url, 48)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Watcher(
            RoundRequest(folder=folder),
            every=5.0,
            tell=told.append,
            pause=pause,
        ).forever()
    assert [turn.kind for turn in told] == ["error", "run", "run"]
    assert "503" in told[0].error
    assert pauses == [10.0, 5.0, 5.0]
    assert (told[1].n_new_predictions, told[2].n_new_predictions, state["n_asked"]) == (40, 8, 48)
    assert told[2].n_new_samples == 8
