import pytest

from weakspot.core.errors import ConfigError
from weakspot.data.engine.chunks import ChunkQueue, MapPace, refuse_empty_batches


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
