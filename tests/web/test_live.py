"""Changes are told to whoever listens, as long as their session lasts."""

from tests.web.async_calls import run_apart

from weakspot.web.server_parts import LiveChanges, LiveState


async def _always():
    return True


def test_stream__database_away_for_a_moment__goes_on():
    answers = iter(
        [LiveState(version=1, mark="a"), OSError("away"), LiveState(version=2, mark="b")]
    )

    def look():
        found = next(answers, LiveState(version=2, mark="b"))
        if isinstance(found, OSError):
            raise found
        return found

    live = LiveChanges(look, every=0.01)

    async def listen():
        told = []
        async for event in live.stream(_always, still_here=30):
            told.append(event)
            if "id: 2" in event:
                live.close()
        return told

    assert any("id: 2" in one for one in run_apart(listen))


def test_stream__session_has_ended__nothing_is_told():
    live = LiveChanges(lambda: LiveState(version=1, mark="a"))

    async def welcome():
        return False

    async def listen():
        return [event async for event in live.stream(welcome)]

    assert run_apart(listen) == ["retry: 2000\n\n"]
