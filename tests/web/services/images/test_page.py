import numpy as np

from weakspot.web.services.images import ImagePageQuery, image_choices, image_page, visible_samples


def test_page__offset_and_limit__pages_follow_one_another(world_workspace):
    query = ImagePageQuery(order="loss", limit=50)
    pages = [
        image_page(world_workspace, query.model_copy(update={"offset": offset})).images
        for offset in (0, 50)
    ]
    whole = image_page(world_workspace, query.model_copy(update={"limit": 100}))
    assert [*pages[0], *pages[1]] == whole.images
    assert whole.total == whole.n_visible == len(visible_samples(world_workspace))


def test_page__around_an_image__is_the_one_it_is_on(world_workspace):
    query = ImagePageQuery(label="disc", order="sure", limit=20)
    third = image_page(world_workspace, query.model_copy(update={"offset": 40})).images[7]
    found = image_page(world_workspace, query.model_copy(update={"around": third.sample_id}))
    assert (found.offset, found.place, found.images[7]) == (40, 47, third)
    other = image_page(world_workspace, ImagePageQuery(label="star", limit=1)).images[0]
    elsewhere = image_page(world_workspace, query.model_copy(update={"around": other.sample_id}))
    assert (elsewhere.offset, elsewhere.place) == (0, None)


def test_page__images__say_label_answer_and_result(world_workspace):
    dataset = world_workspace.samples.dataset
    for one in image_page(world_workspace, ImagePageQuery(part="discovery half")).images:
        assert one.label == dataset.class_names[dataset.labels[one.row]]
        assert one.is_failure == (one.label != one.answer)
        assert one.score is None


def test_choices__world__classes_parts_and_attributes(world_workspace):
    found = image_choices(world_workspace)
    assert found.classes == list(world_workspace.samples.dataset.class_names)
    assert "discovery half" in found.parts
    colour = next(one for one in found.attributes if one.title == "colour")
    assert "green" in [value.title for value in colour.values]
    assert (found.has_results, found.has_words, found.has_embeddings) == (True, True, True)
    assert np.isfinite(visible_samples(world_workspace).sure).any() == found.has_probabilities
