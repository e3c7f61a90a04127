import pytest

from weakspot.core.errors import ModelError
from weakspot.models.transformers.image_to_text import TransformersAnswerer
from weakspot.testing import material

QUESTION = "what colour is it?"


def _answerer(folder, **options):
    return TransformersAnswerer(
        model=folder, device="cpu", **{"max_new_tokens": 4, "batch_size": 3, **options}
    )


@pytest.mark.parametrize("kind", ["blip2", "git", "vilt", "idefics3", "llava"])
def test_answer__depends_on_the_image_not_on_the_batch(saved, kind):
    answerer, images = _answerer(saved(kind)), material.images()
    together = answerer.answer(images, QUESTION)
    assert together == [answerer.answer([image], QUESTION)[0] for image in images]
    assert len(set(together)) > 1


def test_answer__without_the_question(saved):
    asked = "what is it"
    for kind in ("blip2", "git"):
        answers = _answerer(saved(kind)).answer(material.images(), asked)
        assert not any(asked in text or "Question" in text.split()[:1] for text in answers)


def test_answer__question_matters(saved):
    answerer = _answerer(saved("blip", for_questions=True))
    assert answerer.answer(material.images(), "two ?") != answerer.answer(
        material.images(), "is it dark on the street ?"
    )


def test_answer__vilt_chooses_one_of_its_labels(saved):
    assert set(_answerer(saved("vilt")).answer(material.images(), QUESTION)) <= {
        "red",
        "blue",
        "two",
    }


def test_answer__captioner_given_as_answerer_says_what_is_missing(saved):
    with pytest.raises(
        ModelError, match=r"not trained for this: \d+ weights are missing.*VisualQuestionAnswering"
    ):
        _answerer(saved("blip")).answer(material.images(), QUESTION)


def test_answerer_id__is_of_the_weights(saved, tiny, tmp_path):
    other = tiny.save_blip(tmp_path / "blip", for_questions=True, seed=2)
    assert _answerer(saved("blip", for_questions=True)).answerer_id != _answerer(other).answerer_id
