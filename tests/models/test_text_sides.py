from weakspot.models.embedded.encoder import EmbeddedDefault
from weakspot.models.text_side import text_id_of
from weakspot.testing.fakes import PlantedEmbedder


def test_text_id_of__the_encoder_unless_its_phrases_have_a_name_of_their_own():
    assert text_id_of(PlantedEmbedder()) == PlantedEmbedder().encoder_id
    embedded = EmbeddedDefault()
    assert text_id_of(embedded) == embedded.text_id != embedded.encoder_id
