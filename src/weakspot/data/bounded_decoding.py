"""Images from strangers, decoded in a process of its own: little time, little memory, and nothing of ours in reach.

In: one line of JSON, `{"image_side", "longest_side"}`, then the encoded image. Out: one line of JSON, `{"width", "height"}` or
`{"reason", "detail"}`, then the pixels as RGB.
"""

import json
import os
import subprocess
import sys
import tempfile

from PIL import Image

from weakspot.core.errors import UnavailableError
from weakspot.data.images import UnreadableImageError, decode_image

MAX_SIDE = 4096
MAX_BYTES = 32 * 1024 * 1024
MEBIBYTE = 1024 * 1024
PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "LC_ALL")
LIMITS_VARIABLE = "WEAKSPOT_DECODER_LIMITS"
TOO_SLOW = "Decoding it took too long."


def decode_bounded(
    data: bytes,
    *,
    image_side: int | None = None,
    longest_side: int = 2048,
    seconds: float = 10.0,
    megabytes: int = 1024,
) -> Image.Image:
    """Return an upright RGB image.

    Args:
        data: the encoded image, from anybody.
        image_side: shortest side that is needed, as of `decode_image`.
        longest_side: larger images are made smaller.
        seconds: the process is ended after that.
        megabytes: more memory it does not get.

    Raises:
        UnreadableImageError: if it cannot be decoded within these bounds.
        UnavailableError: if no process can be started.
    """
    if len(data) > MAX_BYTES:
        raise UnreadableImageError("too-large", f"{len(data):,} bytes; the limit is {MAX_BYTES:,}.")
    request = json.dumps(
        {"image_side": image_side, "longest_side": min(longest_side, MAX_SIDE)}
    ).encode()
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment |= {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        LIMITS_VARIABLE: f"{int(seconds) + 1} {megabytes}",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __spec__.name],
            input=request + b"\n" + data,
            capture_output=True,
            timeout=seconds,
            env=environment,
            cwd=tempfile.gettempdir(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnreadableImageError("too-large", TOO_SLOW) from None
    except OSError as error:
        raise UnavailableError("Images cannot be decoded now.", given=error.strerror) from error
    return _answer(done.stdout, done.returncode)


def _answer(output: bytes, code: int) -> Image.Image:
    line, _, pixels = output.partition(b"\n")
    try:
        told = json.loads(line)
    except ValueError:
        told = {}
    if "reason" in told:
        raise UnreadableImageError(str(told["reason"]), str(told["detail"]))
    if code or not {"width", "height"} <= set(told):
        if -code in _signals("SIGXCPU", "SIGKILL"):
            raise UnreadableImageError("too-large", TOO_SLOW)
        raise UnreadableImageError("damaged", "The decoder gave up on it.")
    return Image.frombytes("RGB", (int(told["width"]), int(told["height"])), pixels)


def _signals(*names: str) -> set[int]:
    import signal

    return {int(getattr(signal, name)) for name in names if hasattr(signal, name)}


def main() -> None:
    """Decode the image on the input, within the limits."""
    _limit()
    line, _, data = sys.stdin.buffer.read().partition(b"\n")
    asked = json.loads(line)
    try:
        image = decode_image(data, image_side=asked["image_side"]).image
        image.thumbnail((asked["longest_side"], asked["longest_side"]))
        told: dict[str, int | str] = {"width": image.width, "height": image.height}
        pixels = image.convert("RGB").tobytes()
    except UnreadableImageError as error:
        told, pixels = {"reason": error.reason, "detail": error.detail}, b""
    except MemoryError:
        told, pixels = {"reason": "too-large", "detail": "It takes too much memory."}, b""
    sys.stdout.buffer.write(json.dumps(told).encode() + b"\n" + pixels)


def _limit() -> None:
    """Take away what decoding does not need; where the system cannot, the time limit of the parent remains."""
    try:
        import resource
    except ModuleNotFoundError:
        return
    seconds, megabytes = (int(part) for part in os.environ[LIMITS_VARIABLE].split())
    for what, most in (
        (resource.RLIMIT_AS, megabytes * MEBIBYTE),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    main()
