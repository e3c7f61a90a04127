"""The process of one work: reads a request, reports how far it is, and ends when it is done or stopped, or when its server is gone.

In: one line of JSON, `{"folder": ..., "kind": ..., "arguments": ...}`; the input then stays open for as long as the server lives.
Out: lines of JSON, `{"stage", "done", "total"}` while it works, then `{"result"}` or `{"error"}`.
"""

import json
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import TextIO

from pydantic import JsonValue

GRACE_SECONDS = 5.0
PATIENCE_SECONDS = 60.0
CANCELLED = 130


def main() -> int:
    """Do the work that the input asks for, and return the exit code."""
    answers = _own_output()
    line = sys.stdin.readline()
    if not line:
        return CANCELLED
    request = json.loads(line)
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    try:
        _say(answers, {"result": _work(request, answers)})
    except KeyboardInterrupt:
        return CANCELLED
    except Exception as error:  # noqa: BLE001 (whatever it is, the page is told)
        traceback.print_exc()
        _say(answers, {"error": _sentence(error, Path(request["folder"]))})
        return 1
    return 0


def _work(request: dict[str, JsonValue], answers: TextIO) -> dict[str, JsonValue]:
    # Imported here, so that a server that dies early is noticed and a cancel is obeyed while libraries are loaded.
    from weakspot.project.project import Project
    from weakspot.store.project import ProjectStore
    from weakspot.web.services.work import do_work

    def progress(stage: str, done: int, total: int | None) -> None:
        _say(
            answers,
            {"stage": stage, "done": int(done), "total": None if total is None else int(total)},
        )

    kind, arguments = str(request["kind"]), request["arguments"]
    assert isinstance(arguments, dict)
    ProjectStore.least_patience = PATIENCE_SECONDS
    # Records say what was asked for, not how this process was started.
    sys.argv = ["weakspot", kind]
    project = Project.open(str(request["folder"]), progress=progress)
    return do_work(kind, project, arguments, progress)


def _own_output() -> TextIO:
    """Return the output for answers; whatever libraries print goes to the error stream instead."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


_SPEAKING = threading.Lock()


def _say(answers: TextIO, message: dict[str, JsonValue]) -> None:
    with _SPEAKING:
        answers.write(json.dumps(message) + "\n")
        answers.flush()


def _sentence(error: Exception, folder: Path) -> str:
    from weakspot.core.errors import WeakspotError

    if not isinstance(error, WeakspotError):
        return f"The work failed unexpectedly ({type(error).__name__}). The server's log says more."
    return str(error).replace(f"{folder}/", "").replace(str(folder), "the project folder")


def _end_with_the_server() -> None:
    """Wait until the input is closed, then end as if interrupted; after a while in any case."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(GRACE_SECONDS)
    os._exit(CANCELLED)


if __name__ == "__main__":
    # A server that a shell started in the background ignores SIGINT, and its workers inherit that: they could not be cancelled.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
