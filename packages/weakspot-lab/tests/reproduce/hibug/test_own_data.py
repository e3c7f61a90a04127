import pytest

from weakspot.core.dataset import Split
from weakspot.testing.planted import nothing, plant
from weakspot_lab.reproduce.hibug.own_data import lipstick_files
from weakspot_lab.reproduce.hibug.protocol import PROTOCOL
from weakspot_lab.reproduce.request import ReproduceRequest
from weakspot_lab.reproduce.running import run_protocol


@pytest.fixture(scope="module")
def celeba(tmp_path_factory):
    """Planted images in the files of CelebA: discs wear lipstick, stars do not, and red ones are men."""
    folder = tmp_path_factory.mktemp("celeba")
    (folder / "img_align_celeba").mkdir()
    world = plant(nothing(), 240, classes=("disc", "star"), seed=4)
    lines, parts = ["240", "Wearing_Lipstick Male"], []
    for row in range(len(world)):
        name = f"{row:06d}.png"
        world.image(row, side=32).save(folder / "img_align_celeba" / name)
        scene = world.scene(row)
        male = scene.colour in ("red", "orange", "yellow", "green")
        lines.append(f"{name} {1 if scene.kinds == ('disc',) else -1} {1 if male else -1}")
        parts.append(f"{name} {(0, 0, 1, 2)[row % 4]}")
    (folder / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    (folder / "list_eval_partition.txt").write_text("\n".join(parts) + "\n")
    return folder


def test_lipstick_files__half_of_training_is_the_pool_and_the_rest_follows_gender(celeba):
    names, files = lipstick_files(celeba, 0)
    assert names == ("not wearing_lipstick", "wearing_lipstick")
    splits = [one.split for one in files]
    assert splits.count(Split.VALIDATION) == splits.count(Split.TEST) == 60
    assert 0 < splits.count(Split.TRAIN) < splits.count(Split.POOL)


def test_protocol__the_paper_s_own_data_gives_its_part_of_the_tables(celeba, tmp_path):
    request = ReproduceRequest(
        paper="hibug", out=tmp_path / "out", data=celeba, models=("planted",), is_small=True
    )
    found = run_protocol(PROTOCOL.open(request), request)
    assert not found.is_stand_in
    measured = {one.figure.key for one in found.figures if one.measured.value is not None}
    assert {"two_all", "two_hibug", "two_random", "tuned_coreset"} <= measured
    assert not any(key.startswith(("many", "few", "word", "generated")) for key in measured)
    assert "the paper's data" in (request.out / "tables.md").read_text()
