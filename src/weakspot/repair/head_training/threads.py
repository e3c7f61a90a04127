"""Who works in several threads: the library of matrix products, or we ourselves."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any

from weakspot.repair.head_training.problem import FEW_CLASSES, Problem

MOST_WORKERS = 16
LEAST_PRODUCTS = 5e6


def one_thread_each() -> AbstractContextManager[object]:
    """Return a context in which every matrix product runs in the thread that asks for it.

    Threads that wait for each other at every small step lose a hundredfold on a machine that does other work as well.
    """
    limit = _controller(len(sys.modules)).limit
    return limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _controller(_n_imported: int) -> Any:
    """Return who sets the threads of the libraries that are loaded; looked for again after further imports only, since it takes long."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]

    return ThreadpoolController()


@contextmanager
def workers_for(problem: Problem) -> Iterator[Executor | None]:
    """Yield threads that chunks of a problem are shared out to, None if each product is large enough to be shared out itself."""
    is_few = problem.n_classes <= FEW_CLASSES
    with one_thread_each() if is_few else nullcontext():
        if not is_few or problem.features.size * problem.n_classes < LEAST_PRODUCTS:
            yield None
            return
        n_cores = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
        with ThreadPoolExecutor(min(MOST_WORKERS, n_cores)) as threads:
            yield threads
