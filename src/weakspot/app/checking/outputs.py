"""Files that a check leaves for build servers and people."""

from pathlib import Path

from weakspot import __version__
from weakspot.core.errors import StoreError
from weakspot.release.junit import junit_xml
from weakspot.release.markdown import markdown_comment
from weakspot.release.outcome import PolicyOutcome
from weakspot.release.sarif import sarif_json
from weakspot.store import atomic


def write_outputs(
    outcome: PolicyOutcome, *, junit: Path | None = None, sarif: Path | None = None, markdown: Path | None = None
) -> tuple[Path, ...]:
    """Write the files that are asked for, each in one step, and return them.

    Raises:
        StoreError: if a file cannot be written.
    """
    contents = (
        (junit, junit_xml(outcome) if junit is not None else ""),
        (sarif, sarif_json(outcome, version=__version__) if sarif is not None else ""),
        (markdown, markdown_comment(outcome) if markdown is not None else ""),
    )
    written: list[Path] = []
    for path, content in contents:
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_bytes(path, content.encode())
        except OSError as error:
            raise StoreError(f"The file cannot be written: {error.strerror}.", where=str(path)) from error
        written.append(path)
    return tuple(written)
