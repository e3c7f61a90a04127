import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.generated import PASS, GenerationRequest
from weakspot.core.roles import GeneratedImage
from weakspot.generate.quality import QualityCheck
from weakspot.generate.service import GeneratorService, PendingImage, encoded
from weakspot.store.generated_images import GeneratedImageStore
from weakspot.testing.fakes import PlantedImageGenerator

N_REQUESTS, BATCH_SIZE = 24, 4
REQUESTS = [
    GenerationRequest(class_name="disc", prompt="a green disc", seed=seed)
    for seed in range(N_REQUESTS)
]
PROCESS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_judging import Logging, drawn_in
drawn_in(Path(sys.argv[2]), Logging(Path(sys.argv[3]), stop_at=int(sys.argv[4])))
"""


class Logging:
    """Generates planted images, copies and a black one among them; writes requests down first, and stops for ever at one of them."""

    generator_id = "logging"

    def __init__(self, log, *, stop_at=None):
        self._log, self._stop_at = log, stop_at

    def generate(self, prompts, *, seeds):
        with self._log.open("a") as stream:
            stream.writelines(f"{seed}\n" for seed in seeds)
        if self._stop_at in seeds:
            self._log.with_suffix(".stopped").write_text("")
            signal.pause()
        return [self._made(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def _made(self, prompt, seed):
        shown = seed // 3 if seed % 3 == 0 else seed
        (made,) = PlantedImageGenerator().generate([prompt], seeds=[shown])
        image = Image.new("RGB", (64, 64)) if seed == 11 else made.image
        return GeneratedImage(image=image, prompt=prompt, seed=seed, generator_id=self.generator_id)


def drawn_in(folder, generator):
    return GeneratorService(
        generator, GeneratedImageStore(folder), quality=QualityCheck(), batch_size=BATCH_SIZE
    ).generate(REQUESTS)


def _killed(folder, log, *, stop_at, n_recorded):
    """Run a process that generates, kill it at a certain order once some are recorded, and return which were."""
    here = str(Path(__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS, here, str(folder), str(log), str(stop_at)]
    )
    deadline = time.monotonic() + 120
    try:
        while not (
            log.with_suffix(".stopped").exists() and len(GeneratedImageStore(folder)) >= n_recorded
        ):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    log.with_suffix(".stopped").unlink()
    return {one.request.seed for one in GeneratedImageStore(folder)}


def _asked(log):
    return [int(seed) for seed in log.read_text().split()] if log.exists() else []


def _files(folder):
    return {path.name: path.read_bytes() for path in (folder / "images").rglob("*.png")}


def test_draw__killed_and_resumed_is_the_same_as_uninterrupted(tmp_path):
    folder, log, whole = tmp_path / "killed", tmp_path / "log.txt", tmp_path / "whole"
    first = _killed(folder, log, stop_at=9, n_recorded=8)
    n_first = len(_asked(log))
    second = _killed(folder, log, stop_at=18, n_recorded=16)
    n_second = len(_asked(log))
    generated = drawn_in(folder, Logging(log))
    assert (first, second) == (set(range(8)), set(range(16)))
    assert not first & set(_asked(log)[n_first:])
    assert not second & set(_asked(log)[n_second:])
    assert generated == drawn_in(whole, Logging(tmp_path / "other.txt"))
    assert {one.rejected_by for one in generated} == {"", "near-duplicate", "black"}
    assert _files(folder) == _files(whole)
    journals = [(place / "journal.jsonl").read_bytes() for place in (folder, whole)]
    assert journals[0] == journals[1]
    assert [
        json.loads(line)["generated"]["request"]["seed"] for line in journals[0].splitlines()
    ] == list(range(N_REQUESTS))


def test_encoded__the_same_bytes_for_the_same_pixels_whatever_else_a_image_carries():
    (made,) = PlantedImageGenerator().generate(["a disc"], seeds=[1])
    other = made.image.copy()
    other.info.update({"dpi": (72, 72), "icc_profile": b"x", "gamma": 0.5})
    assert encoded(made.image) == encoded(other)


def test_sheet__a_rejection_by_the_generator_is_not_overwritten():
    (made,) = PlantedImageGenerator().generate(["a disc"], seeds=[1])
    given = GeneratedImage(
        image=made.image,
        prompt="a disc",
        seed=1,
        generator_id="g",
        verdicts={"black": "says so", "blank": PASS},
    )
    sheet = PendingImage.of((REQUESTS[0], given))
    sheet.say("black", PASS)
    sheet.say("blank", "it is")
    assert sheet.verdicts == {"black": "says so", "blank": "it is"}


def test_sheet__text_that_cannot_be_written_is_made_so():
    image = Image.fromarray(np.zeros((20, 20, 3), dtype=np.uint8))
    given = GeneratedImage(
        image=image,
        prompt="a",
        seed=1,
        generator_id="g",
        parents=("\ud800",),
        verdicts={"odd": "\udfff" * 500},
    )
    sheet = PendingImage.of((REQUESTS[0], given))
    assert sheet.parents == ("?",)
    assert set(sheet.verdicts["odd"]) == {"?"}
