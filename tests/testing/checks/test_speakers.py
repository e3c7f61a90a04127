from weakspot.testing.fakes import (
    PlantedCaptioner,
)


class Numbering(PlantedCaptioner):
    def caption(self, pictures, *, about=None):
        return [f"{number} {text}" for number, text in enumerate(super().caption(pictures, about=about))]


def test_check_captioner__broken_in_one_way(rejected):
    assert "One picture at a time" in rejected("captioners", "batches_do_not_matter", Numbering)
