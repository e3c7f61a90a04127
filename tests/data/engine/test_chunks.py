import pytest

from weakspot.core.errors import ConfigError
from weakspot.data.engine.chunks import BatchPace, Chunk, ChunkQueue, MapPace, refuse_empty_batches


@pytest.mark.parametrize(
    ("deaths", "is_given_up"),
    [(["worker"] * 2 + ["machine"] * 19, False), (["worker"] * 3, True), (["machine"] * 20, True)],
)
def test_parcel__machines_that_are_taken_away_say_little_about_items(deaths, is_given_up):
    chunk = Chunk(0, [1])
    for death in deaths:
        chunk.count(death)
    assert chunk.is_given_up is is_given_up


def test_map_pace__parcels_grow_while_they_are_done_in_no_time():
    pace, intake = MapPace(queue_depth=16), ChunkQueue(range(1000))
    sizes = []
    for _ in range(6):
        chunk = pace.next_chunk(intake)
        sizes.append(len(chunk.items))
        pace.learn(len(chunk.items), 0.0)
    assert sizes == [1, 2, 4, 8, 8, 8]
    pace.learn(8, 80.0)
    assert len(pace.next_chunk(intake).items) == 1


def test_map_pace__room_is_counted_in_items():
    pace = MapPace(queue_depth=4)
    assert pace.has_room([Chunk(0, [0] * 11)], n_workers=2)
    assert not pace.has_room([Chunk(0, [0] * 12)], n_workers=2)


@pytest.mark.parametrize(("queue_depth", "each", "ahead"), [(0, 2, 1), (8, 3, 1), (64, 4, 2)])
def test_batch_pace__works_ahead_as_far_as_the_queue_allows(queue_depth, each, ahead):
    pace = BatchPace(batch_size=8, queue_depth=queue_depth)
    assert (pace.chunks_each, pace.n_ahead) == (each, ahead)


def test_singles__each_item_is_tried_twice_alone():
    pace = BatchPace(batch_size=2, queue_depth=0)
    whole = pace.next_chunk(ChunkQueue("ab"))
    singles = pace.singles(whole)
    assert [single.items for single in singles] == [["a"], ["b"]]
    assert len({whole.number, *(single.number for single in singles)}) == 3
    singles[0].count("worker")
    assert not singles[0].is_given_up
    singles[0].count("worker")
    assert singles[0].is_given_up


def test_take__interrupt_is_not_kept_back():
    def items():
        yield 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ChunkQueue(items()).take(2)


def test_refuse_empty_batches():
    refuse_empty_batches(1)
    with pytest.raises(ConfigError, match="at least one item"):
        refuse_empty_batches(0)
