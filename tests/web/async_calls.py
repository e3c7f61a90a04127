"""Asynchronous functions in tests: a browser driven in the same process keeps its own event loop in the main thread."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")


def run_apart(call: Callable[[], Awaitable[Given]], *, seconds: float = 30) -> Given:
    """Return what an asynchronous function gives, in a thread and an event loop of its own."""

    async def wait() -> Given:
        return await asyncio.wait_for(call(), seconds)

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(wait())).result()
