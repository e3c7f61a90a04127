"""Every error a user can meet, as one tree.

    WeakspotError                 anything that weakspot says on purpose
    ├── InputError                what the user gave cannot be used (exit code 2)
    │   ├── ConfigError           weakspot.toml or an option
    │   ├── DataError             a data set, manifest or label
    │   └── ModelError            a classifier, embedder or other model
    │       └── RefusedPromptError    an image generator cannot generate what a prompt says
    ├── MissingExtraError         an optional library is needed; the fix is the install command
    ├── UnavailableError          a hub, registry, endpoint or file could not be reached
    ├── StoreError                the project folder: locked, damaged or of another version
    └── NotEnoughDataError        nothing is left to work on, or too little to say anything

Each error says what happened, where, what was given and what to do.
"""

from collections.abc import Callable, Sequence


class WeakspotError(Exception):
    """Base of all errors that weakspot raises on purpose.

    Args:
        what: one sentence on what is wrong.
        where: the file, row, option or setting it is about.
        given: what was found there.
        fix: what the user can do about it.
    """

    exit_code = 2

    def __init__(
        self, what: str, *, where: str | None = None, given: object = None, fix: str | None = None
    ) -> None:
        self.what = what
        self.where = where
        self.given = given
        self.fix = fix
        super().__init__(self._sentence())

    def __reduce__(self) -> tuple[Callable[..., "WeakspotError"], tuple[object, ...]]:
        """Return how the error is made again in another process, whatever its class is built from."""
        return _made_again, (type(self), self.args, vars(self))

    def _sentence(self) -> str:
        parts = [self.what]
        if self.where is not None:
            parts.append(f"Where: {self.where}.")
        if self.given is not None:
            parts.append(f"Given: {self.given!r}.")
        if self.fix is not None:
            parts.append(f"To do: {self.fix}")
        return " ".join(parts)


def tell_where(error: WeakspotError, where: str) -> None:
    """Let an error say in words of the caller, who knows better, where it is."""
    WeakspotError.__init__(error, error.what, where=where, given=error.given, fix=error.fix)


class InputError(WeakspotError):
    """What the user gave cannot be used."""


class ConfigError(InputError):
    """A setting in weakspot.toml or an option is wrong."""


class DataError(InputError):
    """A data set, manifest, label or column is wrong."""


class ModelError(InputError):
    """A classifier, embedder or other model cannot be loaded or answers nonsense."""


class RefusedPromptError(ModelError):
    """An image generator cannot draw what a prompt says; the fix names what it can."""


class MissingExtraError(WeakspotError):
    """An optional library is needed.

    >>> str(MissingExtraError("torch", extra="torch", purpose="TorchScript classifiers"))
    "TorchScript classifiers need the library 'torch'. To do: pip install 'weakspot[torch]'"
    """

    def __init__(self, library: str, *, extra: str, purpose: str) -> None:
        self.library = library
        self.extra = extra
        super().__init__(
            f"{purpose} need the library {library!r}.", fix=f"pip install 'weakspot[{extra}]'"
        )


class UnavailableError(WeakspotError):
    """A hub, registry, endpoint or file could not be reached."""


class StoreError(WeakspotError):
    """The project folder is locked, damaged or of another version."""


class NotEnoughDataError(WeakspotError):
    """Nothing is left to work on, or too little to say anything."""


def _made_again(
    kind: type[WeakspotError], args: tuple[object, ...], facts: dict[str, object]
) -> WeakspotError:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(facts)
    return error


def raise_all(
    problems: Sequence[str],
    *,
    error: type[InputError],
    what: str,
    where: str | None = None,
    fix: str | None = None,
) -> None:
    """Raise one error that lists every problem; do nothing when there is none."""
    if not problems:
        return
    listed = "\n".join(f"  {number}. {problem}" for number, problem in enumerate(problems, start=1))
    raise error(f"{what}\n{listed}\n", where=where, fix=fix)
