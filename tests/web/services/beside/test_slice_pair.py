"""Two slices beside each other."""

from weakspot.web.services.compare import slice_pair
from weakspot.web.services.images import is_visible


def _pair(workspace, first, second):
    record = workspace.record()
    by_words = {found.names[0].contrast: found for found in record.slices}
    return slice_pair(workspace, record, by_words[first], by_words[second])


def test_slice_pair__overlapping__every_member_is_in_one_part(sliced):
    found = _pair(sliced, "green", "on a shelf")
    both, first, second = found.parts
    dataset, rows = sliced.samples.dataset, sliced.problem("apple").rows
    colours = dataset.metadata("colour").to_pylist()
    places = dataset.metadata("place").to_pylist()
    green = {row for row in rows.tolist() if colours[row] == "green"}
    shelf = {row for row in rows.tolist() if places[row] == "shelf"}
    assert both.failed.total == len(green & shelf)
    assert first.failed.total == len(green - shelf)
    assert second.failed.total == len(shelf - green)
    assert found.overlap == len(green & shelf) / len(green | shelf)
    assert {image.row for image in both.images} <= green & shelf
    assert all(is_visible(sliced, image.row) for part in found.parts for image in part.images)
    assert found.first.words == "green"
    assert f"share {both.failed.total} images" in found.sentence


def test_slice_pair__what_sets_them_apart__largest_difference_first(sliced):
    found = _pair(sliced, "green", "on a shelf")
    assert {one.column for one in found.values[:2]} <= {"colour", "place"}
    gaps = [abs(one.first.value - one.second.value) for one in found.values]
    assert gaps == sorted(gaps, reverse=True)


def test_slice_pair__failures_come_first(sliced):
    images = _pair(sliced, "green", "on a shelf").parts[1].images
    failed = [image.is_failure for image in images]
    assert failed == sorted(failed, reverse=True)


def test_slice_pair__itself__the_same_images(sliced):
    found = _pair(sliced, "green", "green")
    assert (found.overlap, found.sentence) == (1.0, "They hold the same images.")
