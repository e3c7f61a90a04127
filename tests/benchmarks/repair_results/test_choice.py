import pytest
from repair_results.choice import RepairChoice

from weakspot.core.errors import ConfigError


def test_chosen__every_experiment_once_with_its_size():
    choice = RepairChoice(
        experiments=("worlds", "cifar10", "worlds", "groceries"),
        n_worlds=3,
        n_runs=2,
        n_images=600,
        seed=4,
    )
    assert [one.command for one in choice.chosen()] == [
        "python benchmarks/repair.py worlds --worlds 3 --samples 10000 --seed 4",
        "python benchmarks/repair.py cifar10 --runs 2 --images 600 --seed 4",
        "python benchmarks/repair.py groceries --runs 2 --seed 4",
    ]


@pytest.mark.parametrize("names", [(), ("cifar100",), ("worlds", "birds")])
def test_choice__unknown_names_are_refused(names):
    with pytest.raises(ConfigError, match="no such experiments") as caught:
        RepairChoice(experiments=names)
    assert "groceries" in caught.value.fix
