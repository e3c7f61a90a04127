"""Server for the kill test: warm, single-threaded, forks a child for every job that it is told on its standard input."""

import json
import os
import sys
import traceback
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

from weakspot.data.arrays import ArraySource
from weakspot.data.engine.local import LocalEngine
from weakspot.data.image_folder import ImageFolderSource
from weakspot.run.embedding import EmbedSettings, embed
from weakspot.run.ingestion import ingest
from weakspot.run.model_map import FlushPolicy
from weakspot.store.project import ProjectStore

SIDE = 8
FLUSH = FlushPolicy(n_samples=3, seconds=60.0)


class SmallEncoder:
    """A real ONNX graph whose weights are small whole numbers, so that sums are exact in any order of batches."""

    encoder_id = "small@1"
    dimension = 5
    image_side = SIDE
    has_text = False

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"]
        )

    def prepare(self, image):
        return np.asarray(
            image.resize((SIDE, SIDE), Image.Resampling.BILINEAR), dtype=np.float32
        ).reshape(-1)

    def embed_prepared(self, prepared):
        return self._session.run(None, {"pixels": np.stack(prepared)})[0]


def source_of(job):
    if job["kind"] == "folder":
        return ImageFolderSource(location=job["images"])
    paths = sorted(Path(job["images"]).rglob("good-*.jpg"))
    images = [Image.open(path).convert("RGB") for path in paths]
    return ArraySource(images=images, labels=[path.parent.name for path in paths])


def work(job):
    project = ProjectStore.create(job["project"])
    engine = LocalEngine(n_workers=2, queue_depth=4)
    ingest(project, source_of(job), engine=engine, flush=FLUSH)
    settings = EmbedSettings(batch_size=2, flush=FLUSH)
    embed(
        project, project.dataset(), SmallEncoder(job["encoder"]), engine=engine, settings=settings
    )


def serve():
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work(json.loads(line))
                status = 0
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                sys.stderr.flush()
                os._exit(status)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        _, ended = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(ended)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
