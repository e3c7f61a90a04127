"""The text of a short script that runs a model file with plain libraries, with only the steps that its images need."""

from collections.abc import Iterator

from weakspot.backends.plain_model import PlainModel
from weakspot.backends.preprocessing import Preprocessing

LIBRARIES = {"onnx": "onnxruntime", "torchscript": "torch"}


def script_text(plain: PlainModel, figures_file: str) -> str:
    """Return the script; it reads `figures_file` beside it, prints every figure and ends with 1 if one is not as claimed."""
    library = LIBRARIES[plain.kind]
    parts = [
        f'"""Gives the figures of the repair again with {library}, Pillow and numpy alone: python reproduce.py"""',
        f"import json, sys\nfrom pathlib import Path\nimport numpy as np, {library}\nfrom PIL import Image, ImageOps\n",
        "here = Path(__file__).resolve().parent",
        f'facts = json.loads((here / "{figures_file}").read_text(encoding="utf-8"))\n',
        *_prepare(plain.preprocessing),
        *(_onnx(plain) if plain.kind == "onnx" else _torchscript()),
        'before, after = right(facts["model_before"]), right(facts["model_after"])',
        "n_other = 0",
        'for one in facts["figures"]:',
        '    name, rows, claim = one["of"], one["rows"], (one["right_before"], one["right_after"])',
        "    found = (int(before[rows].sum()), int(after[rows].sum()))",
        "    n_other += found != claim",
        '    print(f"{name}: {found[0]} of {len(rows)} right before, {found[1]} after;", end=" ")',
        '    print("as claimed" if found == claim else f"claimed: {claim}")',
        "sys.exit(1 if n_other else 0)",
    ]
    return "\n".join(parts) + "\n"


def _prepare(made: Preprocessing) -> Iterator[str]:
    yield "def prepare(path):"
    yield "    image = Image.open(here / path)"
    yield '    if image.format in ("JPEG", "MPO"):'
    yield (
        f"        scale = next((s for s in (8, 4, 2) if -(-min(image.size) // s) >= {made.needed_side}), 1)"
    )
    yield "        image.draft(image.mode, (max(1, image.width // scale), max(1, image.height // scale)))"
    yield "    image = ImageOps.exif_transpose(image)"
    yield '    if "A" in image.getbands() or "transparency" in image.info:'
    yield '        image = image.convert("RGBA")'
    yield '        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)'
    yield '    image = image.convert("RGB")' + ('.convert("L")' if made.colour == "grey" else "")
    yield from _resize(made)
    yield f"    pixels = np.asarray(image).reshape({made.height}, {made.width}, {made.n_channels})"
    if made.colour == "bgr":
        yield "    pixels = pixels[:, :, ::-1]"
    if made.dtype != "uint8":
        mean, std = list(made.mean[: made.n_channels]), list(made.std[: made.n_channels])
        yield f"    pixels = pixels.astype(np.float32) * np.float32({made.scale!r})"
        yield f"    pixels = (pixels - np.array({mean}, np.float32)) / np.array({std}, np.float32)"
    order = ".transpose(2, 0, 1)" if made.layout == "channels-first" else ""
    yield f"    return np.ascontiguousarray(pixels{order}.astype(np.{made.dtype}))[None]\n"


def _resize(made: Preprocessing) -> Iterator[str]:
    filter_ = f"Image.Resampling.{made.resample.upper()}"
    if made.crop == "none":
        yield f"    image = image.resize(({made.width}, {made.height}), {filter_})"
        return
    side = made.resize_side or max(made.height, made.width)
    whole = "round" if made.centring == "round" else "int"
    yield "    shorter = min(image.size)"
    yield f"    size = tuple({side} if side == shorter else int({side} * side / shorter) for side in image.size)"
    yield f"    image = image if image.size == size else image.resize(size, {filter_})"
    yield f"    left, top = {whole}((image.width - {made.width}) / 2), {whole}((image.height - {made.height}) / 2)"
    yield f"    image = image.crop((left, top, left + {made.width}, top + {made.height}))"


def _onnx(plain: PlainModel) -> Iterator[str]:
    several = f".repeat({plain.batch}, axis=0)" if plain.batch and plain.batch > 1 else ""
    yield "def right(model):"
    yield '    session = onnxruntime.InferenceSession(str(here / model), providers=["CPUExecutionProvider"])'
    yield (
        f"    scores = [session.run([{plain.output_name!r}], {{{plain.input_name!r}: "
        f'prepare(one["path"]){several}}})[0][0].reshape(-1) for one in facts["images"]]'
    )
    yield from _compare()


def _torchscript() -> Iterator[str]:
    yield "def right(model):"
    yield '    network = torch.jit.load(str(here / model), map_location="cpu").eval()'
    yield "    with torch.inference_mode():"
    yield '        answers = [network(torch.from_numpy(prepare(one["path"]))) for one in facts["images"]]'
    yield "    scores = [(one if isinstance(one, torch.Tensor) else one[0])[0].numpy().reshape(-1) for one in answers]"
    yield from _compare()


def _compare() -> Iterator[str]:
    yield '    said = [facts["class_names"][int(np.argmax(one))] for one in scores]'
    yield '    return np.array([name == one["label"] for name, one in zip(said, facts["images"])])\n'
