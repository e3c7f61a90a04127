from repair_results.worlds import SOURCES, WorldsExperiment, world_case

from weakspot.core.run import no_stage_progress


def test_world_case__the_minority_is_rare_in_training_and_common_in_test(correlation):
    def shares(samples):
        return [
            len(found.members(samples, own)) / len(own)
            for found in correlation.truths
            for own in [found.class_rows(samples)]
        ]

    assert all(share < 0.05 for share in shares(correlation.training))
    assert all(share > 0.15 for share in shares(correlation.test))


def test_world_case__the_same_seed_gives_the_same_parts():
    first, second = (world_case("rare", 3, n_samples=500, seed=2) for _ in range(2))
    assert first.test.digest() == second.test.digest()
    assert first.test.digest() != world_case("rare", 3, n_samples=500, seed=3).test.digest()


def test_experiment__units_command_and_page():
    experiment = WorldsExperiment(n_worlds=2, n_samples=700)
    assert experiment.units() == ["correlation 0", "correlation 1"]
    assert (
        experiment.command == "python benchmarks/repair.py worlds --worlds 2 --samples 700 --seed 0"
    )
    figures = experiment.measure("correlation 1", no_stage_progress)
    assert {one.part for one in figures} == set(SOURCES)
    assert {one.unit for one in figures} == {"correlation 1"}
    page = experiment.page(figures)
    assert "Worlds with a slice to repair: 1 of 1." in page
    assert "| slice-balanced | 1 |" in page
