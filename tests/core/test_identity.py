import numpy as np

from weakspot.core.dataset import dataset_from_columns, identities


def _dataset(places, predictions):
    return dataset_from_columns(
        class_names=["a", "b"],
        labels=[0, 0],
        sample_ids=["one", "two"],
        content_hashes=[f"hash {number} {said}" for number, said in enumerate(predictions)],
        locations=places,
        predictions=np.array(predictions),
    )


def test_identities__image__is_its_content():
    dataset = _dataset(["1.png", "2.png"], [0, 1])
    assert identities(dataset, np.array([1, 0])) == ["hash 1 1", "hash 0 0"]


def test_identities__no_image__is_its_key_whatever_was_predicted():
    first, second = (_dataset([None, "2.png"], [said, 0]) for said in (0, 1))
    rows = np.arange(2)
    assert identities(first, rows)[0] == identities(second, rows)[0]
    assert identities(first, rows)[0] != identities(first, rows)[1] == "hash 1 0"
