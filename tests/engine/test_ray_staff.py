import pytest

from weakspot.engine.ray_staff import _share_of_smallest


@pytest.mark.parametrize(
    ("machines", "gpus", "cores"),
    [
        ([], 0.0, 1.0),
        ([{"memory": 1.0}, {"CPU": 8.0}, {"CPU": 2.0}], 0.0, 2.0),
        ([{"CPU": 64.0}, {"CPU": 32.0, "GPU": 4.0}, {"CPU": 48.0, "GPU": 4.0}], 1.0, 8.0),
        ([{"CPU": 32.0, "GPU": 4.0}], 0.5, 4.0),
        ([{"CPU": 2.0, "GPU": 8.0}], 1.0, 1.0),
        ([{"CPU": 16.0}], 1.0, 1.0),
    ],
)
def test_share_of_smallest__cores_are_shared_among_graphics_processors(machines, gpus, cores):
    assert _share_of_smallest(machines, gpus) == cores
