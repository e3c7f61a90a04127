import json

import pytest

from weakspot.core.errors import DataError
from weakspot.testing.planted import nothing, plant

KINDS = {"disc": "cat", "star": "dog"}


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    """Planted images in the folders of MetaShift: discs are cats, stars are dogs, warm colours are indoors."""
    folder = tmp_path_factory.mktemp("metashift")
    parts = {"cat(indoor)": "train", "cat(outdoor)": "test", "dog(outdoor)": "train", "dog(indoor)": "test"}  # fmt: skip
    world = plant(nothing(), 320, classes=("disc", "star"), seed=4)
    for row in range(len(world)):
        scene = world.scene(row)
        name = KINDS[scene.kinds[0]]
        is_warm = scene.colour in ("red", "orange", "yellow", "green")
        group = f"{name}({'indoor' if is_warm else 'outdoor'})"
        path = folder / parts[group] / name / group / f"{2316000 + row}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        world.image(row, side=32).save(path, quality=95)
    return folder


def _check(found, text):
    arms = found.steps["pets-0"]
    assert {tuple(sorted(one["groups"])) for one in arms.values()} == {
        tuple(
            f"{name}, place {value}" for name in ("cat", "dog") for value in ("indoor", "outdoor")
        )
    }
    assert {"ERM", "Class Prompt", "Clarify (worst-slice)", "Group DRO"} <= set(arms)
    assert "MetaShift WG" in text
    assert "The paper states nothing for MetaShift" in text
    assert all(one.measured.value is None for one in found.figures)


def test_photograph_world__metashift_by_its_folders_gives_every_arm_and_no_figure(
    pets, run_on_data
):
    found, text = run_on_data("clarify", pets)
    _check(found, text)
    assert "MetaShift, with the encoder of this machine" in text


def test_photograph_world__metashift_whose_folders_mix_the_groups(pets, tmp_path, run_on_data):
    groups = {}
    for place, path in enumerate(sorted(pets.rglob("*.jpg"))):
        group = path.parent.name
        part = "train" if place % 2 else "val_out_of_domain"
        mixed = tmp_path / part / group[:3] / path.name
        mixed.parent.mkdir(parents=True, exist_ok=True)
        mixed.symlink_to(path)
        groups[path.stem] = [group]
    (tmp_path / "imageID_to_group.pkl").write_bytes(b"not opened")
    with pytest.raises(DataError, match="Files of MetaShift, mixed are missing"):
        run_on_data("clarify", tmp_path)
    (tmp_path / "imageID_to_group.json").write_text(json.dumps(groups))
    _check(*run_on_data("clarify", tmp_path))
