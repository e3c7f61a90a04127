"""Changes are numbered, and seen by every server on the same database."""

import asyncio

from tests.web.async_calls import run_apart

from weakspot.web.server_parts import LiveChanges, LiveState
from weakspot.web.state.changes import Change, keep_change, version_of
from weakspot.web.state.store import StateStore


async def _always():
    return True


def test_version_of__another_server_on_the_same_database__is_seen_by_whoever_listens(state, url):
    live = LiveChanges(
        lambda: LiveState(version=version_of(state), mark=str(version_of(state))), every=0.05
    )

    async def listen():
        versions = []
        async for event in live.stream(_always, still_here=30):
            if event.startswith("event: change"):
                versions.append(event.partition("id: ")[2].partition("\n")[0])
                if len(versions) == 2:
                    live.close()
                else:
                    await asyncio.to_thread(_change_elsewhere, url)
        return versions

    assert run_apart(listen) == ["0", "1"]


def _change_elsewhere(url):
    other = StateStore(url)
    try:
        keep_change(other, Change(kind="marks", subject="marks", sentence="Marked.", by="Ada"))
    finally:
        other.close()
