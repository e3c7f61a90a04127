"""What the operating system refuses, in words: which file, and what to do."""

import errno
import os
import re

from weakspot.core.errors import WeakspotError

KEPT = "What was finished is kept: the same command continues from there."
ADVICE: dict[int, str] = {
    errno.ENOSPC: f"Make room on that disk, then run the same command again. {KEPT}",
    errno.EDQUOT: f"Make room within your quota, then run the same command again. {KEPT}",
    errno.EROFS: f"Make the folder writable or choose another one. {KEPT}",
    errno.EACCES: f"Allow this user to read and write there. {KEPT}",
    errno.EPERM: f"Allow this user to read and write there. {KEPT}",
    errno.EMFILE: f"Raise the limit of open files (ulimit -n). {KEPT}",
    errno.EIO: f"Check the disk or the network folder. {KEPT}",
    errno.ENOMEM: f"Free some memory, or lower batch_size. {KEPT}",
    errno.ESTALE: f"The network folder went away: mount it again. {KEPT}",
}
_WRITTEN_NUMBER = re.compile(r"\berrno (\d+)\b", re.IGNORECASE)
_PART_WRITTEN = re.compile(r"\d+ requested and \d+ written")


def refusal(error: OSError) -> WeakspotError:
    """Return the error to show; libraries that write the number into their text only are understood too.

    >>> refusal(OSError("Error writing bytes to file. Detail: [errno 28] No space left on device")).what
    'The operating system refused: No space left on device.'
    """
    number = error.errno if error.errno is not None else _number_in(str(error))
    why = os.strerror(number) if number is not None else str(error)
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
    fix = KEPT if number is None else ADVICE.get(number)
    return WeakspotError(f"The operating system refused: {why}.", where=where, fix=fix)


def _number_in(text: str) -> int | None:
    """Return the error number that a text means; numpy says only that a part was written, as a full disk does."""
    if _PART_WRITTEN.search(text):
        return errno.ENOSPC
    written = _WRITTEN_NUMBER.search(text)
    return int(written[1]) if written else None


def out_of_memory() -> WeakspotError:
    """Return the error for a process that gets no more memory."""
    return WeakspotError("There is not enough memory.", fix=f"Lower batch_size, or use a machine with more memory. {KEPT}")
