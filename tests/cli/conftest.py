import csv

import pytest

from weakspot.core.dataset import Split
from weakspot.testing.planted import plant, rare


@pytest.fixture(scope="session")
def planted_project(tmp_path_factory):
    """A project folder with images, predictions in the manifest, and the planted embedder configured."""
    folder = tmp_path_factory.mktemp("planted-project")
    world = plant(rare(0.01), 1200, seed=3)
    chosen = world.dataset.rows_of(Split.TRAIN, Split.VALIDATION)
    files = world.write_images(folder, rows=chosen)
    with files.manifest.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    names = world.dataset.class_names
    for row, entry in zip(chosen, rows, strict=True):
        entry["prediction"] = names[world.dataset.predictions[row]]
        # Members of the planted slice always fail, so that the tests do not depend on chance.
        is_green_disc = world.slices[0].inside[row] and entry["split"] == "validation"
        entry["prediction"] = (
            "star" if is_green_disc else entry["label"] if int(row) % 7 else "square"
        )
    with (folder / "manifest.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(
            stream, fieldnames=["path", "label", "split", "prediction"], extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(rows)
    (folder / "weakspot.toml").write_text(
        '[data]\nsource = "manifest.csv"\n[embedder]\nname = "planted"\n'
    )
    return folder
