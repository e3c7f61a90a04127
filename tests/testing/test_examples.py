from weakspot.testing.examples import (
    confirmation_samples,
    discovery_samples,
    example_slices,
    repair_example,
)


def test_examples__confirmation_samples_are_others():
    assert not set(discovery_samples().rows) & set(confirmation_samples().rows)


def test_examples__slices_are_of_the_material():
    assert example_slices()[0].class_name == "disc"
    slices, material = repair_example()
    assert {slice_.slice_id for slice_ in slices} == set(material.evidence)
