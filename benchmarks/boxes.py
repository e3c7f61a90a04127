"""Detection data: how long reading a COCO file of a million boxes takes, and cutting boxes out of images."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

N_BOXES, PER_IMAGE, N_CUT = 1_000_000, 7, 150
SIZE = (640, 480)
READ = """
import resource, sys, time
started = time.process_time()
if sys.argv[2] == "weakspot":
    from weakspot.data.coco import read_coco
    n_boxes = read_coco(sys.argv[1]).n_boxes
else:
    import json, pathlib
    n_boxes = len(json.loads(pathlib.Path(sys.argv[1]).read_bytes())["annotations"])
print(n_boxes, time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def write_instances(path: Path, n_boxes: int) -> None:
    rng = np.random.default_rng(0)
    with path.open("w") as stream:
        stream.write(
            '{"info": {}, "categories": '
            + json.dumps([{"id": code, "name": f"class {code}"} for code in range(1, 81)])
        )
        stream.write(', "images": [')
        n_images = -(-n_boxes // PER_IMAGE)
        sides = f'"width": {SIZE[0]}, "height": {SIZE[1]}'
        stream.write(
            ",".join(
                f'{{"id": {number}, "file_name": "{number:012d}.jpg", {sides}}}'
                for number in range(n_images)
            )
        )
        stream.write('], "annotations": [')
        outlines = [
            ",".join(f"{value:.2f}" for value in rng.uniform(0, 480, 40)) for _ in range(1000)
        ]
        for number in range(n_boxes):
            box = f'"bbox": [{number % 500}.25, 20.5, 60.25, 80.75]'
            place = f'"image_id": {number // PER_IMAGE}, "category_id": {number % 80 + 1}, {box}'
            outline = f'"iscrowd": 0, "segmentation": [[{outlines[number % 1000]}]]'
            stream.write(("," if number else "") + f'{{"id": {number}, {place}, {outline}}}')
        stream.write("]}")


def measured_reading(path: Path, how: str) -> tuple[int, float, float]:
    command = [sys.executable, "-c", READ, str(path), how]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(printed[0]), float(printed[1]), float(printed[2])


def measured_cutting(folder: Path) -> tuple[float, float, int]:
    from weakspot.data.coco import CocoSource
    from weakspot.data.images import decode_image

    rng = np.random.default_rng(0)
    for number in range(N_CUT):
        rough = rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(rough).resize(SIZE, Image.Resampling.BICUBIC).save(
            folder / f"{number:012d}.jpg", quality=90
        )
    write_instances(folder / "instances_val.json", N_CUT * PER_IMAGE)
    datas = [path.read_bytes() for path in sorted(folder.glob("*.jpg"))]
    source = CocoSource(location=str(folder / "instances_val.json"))
    n_cut = sum(sample.data is not None for sample in source.read())
    decoding, cutting = [], []
    for _ in range(3):
        started = time.perf_counter()
        for data in datas:
            decode_image(data)
        decoding.append(time.perf_counter() - started)
        started = time.perf_counter()
        for _sample in source.read():
            pass
        cutting.append(time.perf_counter() - started)
    return min(decoding), min(cutting), n_cut


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_instances(folder / "instances_large.json", N_BOXES)
        size = (folder / "instances_large.json").stat().st_size / 1e6
        print(
            f"| COCO file of {N_BOXES:,} boxes, {size:.0f} MB | CPU seconds | peak MB |\n|---|---|---|"
        )
        for how, said in (
            ("weakspot", "weakspot, element by element"),
            ("json", "json.loads alone, everything at once"),
        ):
            _, seconds, peak = measured_reading(folder / "instances_large.json", how)
            print(f"| {said} | {seconds:.1f} | {peak:.0f} |")
        (folder / "instances_large.json").unlink()
        decoding, cutting, n_cut = measured_cutting(folder)
    print(
        f"\n| {N_CUT} images of {SIZE[0]} x {SIZE[1]}, {n_cut} boxes | seconds | boxes a second |\n|---|---|---|"
    )
    print(f"| decoding the images alone, one thread | {decoding:.2f} | |")
    print(f"| decoding, cutting and writing PNG | {cutting:.2f} | {n_cut / cutting:.0f} |")
    print(
        f"\nPeak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )


if __name__ == "__main__":
    main()
