import errno
import json
import logging
import os
import re
import signal
from dataclasses import dataclass

import pytest

from weakspot.cli import terminal
from weakspot.core.errors import DataError


def test_report_error__every_part_on_a_line_of_its_own(capsys):
    terminal.report_error(
        DataError("Two labels clash.", where="manifest.csv, row 3", given="cat", fix="Choose one.")
    )
    assert capsys.readouterr().err.splitlines() == [
        "error: Two labels clash.",
        "  where: manifest.csv, row 3",
        "  given: cat",
        "  to do: Choose one.",
    ]


def test_showing_progress__interrupted_says_that_nothing_is_lost(capsys):
    with pytest.raises(KeyboardInterrupt), terminal.showing_progress():
        raise KeyboardInterrupt
    assert "the same command continues from there" in capsys.readouterr().err


def test_showing_progress__one_line_a_stage_without_a_terminal(capsys):
    with terminal.showing_progress() as progress:
        for done in range(9):
            progress("embed", done, 8)
        progress("classify", 0, 0)
        progress("ingest", 5, None)
        progress("ingest", 6, None)
        progress("again", 3, 1200)
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.splitlines() == ["embed: 8", "ingest: begun", "again: 3 of 1,200"]


def test_showing_progress__a_bar_a_stage_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    with terminal.showing_progress() as progress:
        for done in range(9):
            progress("embed", done, 8)
        progress("classify", 0, 0)
        progress("discover", 1, 4)
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err).splitlines()[-2:]
    assert re.match(r"embed +\S+ 8/8 +\S+ done", last[0].strip())
    assert re.match(r"discover +.+ 1/4 +\S+ left", last[1].strip())
    assert all(len(line.rstrip()) <= 80 for line in last)


def test_print_json__keeps_letters_as_they_are(capsys):
    terminal.print_json({"name": "pomme café"})
    text = capsys.readouterr().out
    assert "café" in text
    assert json.loads(text) == {"name": "pomme café"}


@dataclass
class Summary:
    n_samples: int


def test_show__a_dataclass_as_json_or_its_lines(capsys):
    terminal.show(Summary(n_samples=3), (), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"n_samples": 3}
    terminal.show(Summary(n_samples=3), ("3 samples.", "None unreadable."), as_json=False)
    assert capsys.readouterr().out == "3 samples.\nNone unreadable.\n"


@pytest.fixture
def package_logger():
    logger = logging.getLogger("weakspot")
    before = (logger.level, logger.propagate, list(logger.handlers))
    yield logger
    logger.level, logger.propagate, logger.handlers = before


@pytest.mark.parametrize(("verbosity", "shown"), [(1, ["info"]), (2, ["info", "debug"])])
def test_start_logging__every_logger_of_the_package(package_logger, capsys, verbosity, shown):
    terminal.start_logging(verbosity)
    other = logging.getLogger("weakspot.data.other")
    other.info("info")
    other.debug("debug")
    lines = capsys.readouterr().err.splitlines()
    assert "weakspot.cli.terminal: weakspot " in lines[0]
    assert [line.split("weakspot.data.other: ")[1] for line in lines[1:]] == shown


def test_report_error__the_traceback_goes_to_the_log_only(package_logger, capsys):
    error = DataError("Two labels clash.")
    terminal.report_error(error)
    assert "DataError" not in capsys.readouterr().err
    terminal.start_logging(1)
    terminal.report_error(error)
    assert "DataError" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_on_signals__also_where_they_were_ignored(number):
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt), terminal.stopping_on_signals() as received:
            os.kill(os.getpid(), number)
        assert received == [number]
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


FULL, DENIED = "No space left on device", "Permission denied"
READ_ONLY = "Read-only file system"


@pytest.mark.parametrize(
    ("error", "what", "where", "advice"),
    [
        (OSError(errno.ENOSPC, FULL, "/p/a.npy"), FULL, "/p/a.npy", "Make room"),
        (PermissionError(errno.EACCES, DENIED, b"/p/a"), DENIED, "/p/a", "Allow this user"),
        (OSError(f"written: [Errno 30] {READ_ONLY}: x"), READ_ONLY, None, "writable"),
        (OSError("400 requested and 391 written"), FULL, None, "Make room"),
        (OSError("something of a library"), "something of a library", None, terminal.KEPT),
    ],
)
def test_describe_os_error__says_what_where_and_what_to_do(error, what, where, advice):
    shown = terminal.describe_os_error(error)
    assert shown.what == f"The operating system refused: {what}."
    assert shown.where == where
    assert advice in shown.fix
    assert shown.exit_code == 2


def test_describe_os_error__number_without_advice_gives_none():
    assert terminal.describe_os_error(OSError(errno.ENXIO, "No such device")).fix is None


def test_describe_memory_error__says_what_to_do():
    assert "batch_size" in terminal.describe_memory_error().fix
