from weakspot.core.slices import SliceName
from weakspot.testing.checks import checks_for


class Renaming:
    def describe(self, slices, samples, criterion, assistants):
        name = SliceName(phrase="a photo of a thing", contrast="thing", score=1.0, describer="x")
        return tuple(found.model_copy(update={"names": (name,)}) for found in slices)


class Reordering(Renaming):
    def describe(self, slices, samples, criterion, assistants):
        return super().describe(slices, samples, criterion, assistants)[::-1]


class Retouching(Renaming):
    def describe(self, slices, samples, criterion, assistants):
        named = super().describe(slices, samples, criterion, assistants)
        return tuple(found.model_copy(update={"strength": 0.9}) for found in named)


class Wordless(Renaming):
    def describe(self, slices, samples, criterion, assistants):
        return tuple(slices)


def test_check_describer__broken_in_one_way(rejected):
    same = "slices_stay_the_same_but_for_names"
    checks_for("describers")[same](Renaming)
    assert "reordered" in rejected("describers", same, Reordering)
    assert "More than the names" in rejected("describers", same, Retouching)
    assert "got no name" in rejected("describers", "names_are_words", Wordless)
