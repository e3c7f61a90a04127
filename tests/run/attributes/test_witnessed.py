from dataclasses import dataclass, field

import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.run.settings import WitnessSettings
from weakspot.run.witnesses import witnessed_columns
from weakspot.words.attribute_columns import AssignedColumn, LeftOut


@dataclass
class Colourist:
    """Its attributes are what it was told to say."""

    kind: str = "masks"

    def tags(self, said):
        return {"object colour": said.strip("?"), "always": "same"}


@dataclass
class Said:
    texts: list
    witnesses: tuple = (Colourist(),)
    problems: dict = field(default_factory=dict)
    n_asked: int = 0

    def try_said(self, witness, rows):
        self.n_asked += len(rows)
        return [self.texts[row] for row in rows]

    def notes(self):
        return ("The witness 'text' was not asked: it is not there.",)


@pytest.fixture
def said():
    return Said(["green"] * 3 + ["red"] * 6 + ["blue", "", "?"])


def _dataset(n_rows):
    return dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[row % 2 for row in range(n_rows)],
        splits=["validation"] * n_rows,
    )


def test_witnessed_columns__rare_values_stay_and_single_ones_do_not(said):
    notes = []

    colour, always = witnessed_columns(said, _dataset(12), WitnessSettings(), notes)

    assert isinstance(colour, AssignedColumn)
    assert [value.value for value in colour.attribute.values] == ["red", "green"]
    assert [value.share for value in colour.attribute.values] == [0.5, 0.25]
    assert colour.column.to_pylist() == ["green"] * 3 + ["red"] * 6 + [None] * 3
    assert colour.attribute.missing_share == 0.25
    assert isinstance(always, LeftOut)
    assert notes == ["The witness 'text' was not asked: it is not there."]


def test_witnessed_columns__too_many_images_are_only_looked_at_if_all_are_meant(said):
    notes = []

    assert list(witnessed_columns(said, _dataset(12), WitnessSettings(most_images=11), notes)) == []
    assert said.n_asked == 0
    assert 'on = "all"' in notes[0]
    found = list(
        witnessed_columns(said, _dataset(12), WitnessSettings(on="all", most_images=11), [])
    )
    assert len(found) == 2
