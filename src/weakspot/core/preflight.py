"""Whether data and classifier fit together, as looked at before anything long begins."""

from enum import StrEnum

from weakspot.core.record import Record


class CheckState(StrEnum):
    """How much a check matters: nothing, worth knowing, or results cannot be trusted until it is mended."""

    OK = "ok"
    NOTICE = "notice"
    PROBLEM = "problem"


class PreflightCheck(Record):
    """One thing that was looked at.

    Args:
        check: short name, for example `class order`.
        state: how much it matters.
        sentence: what was found, in one sentence with its figures.
        fix: what to do; empty if there is nothing to do.
        settings_line: what to write into weakspot.toml, as it stands there; empty if that is not the remedy.
        short: the same in a few words, for one line about all checks.
    """

    check: str
    state: CheckState
    sentence: str
    fix: str = ""
    settings_line: str = ""
    short: str = ""
