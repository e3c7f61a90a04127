"""What is asked for when a paper's protocol is run again."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest:
    """What is asked for.

    Args:
        paper: which paper.
        out: folder for tables, plots and results; an interrupted run is continued there.
        data: folder with the paper's own data; None with a stand-in.
        models: names or files of models; empty for the protocol's own.
        generator: registered name of an image generator; empty for the protocol's own.
        is_stand_in: run on a stand-in of the same shape instead of the paper's data.
        is_small: a version that takes seconds; its figures mean nothing.
        seed: the only source of chance.
    """

    paper: str
    out: Path
    data: Path | None = None
    models: tuple[str, ...] = ()
    generator: str = ""
    is_stand_in: bool = False
    is_small: bool = False
    seed: int = 0

    @property
    def key(self) -> str:
        """Return what results depend on, beside the versions of libraries; where they are written is no part of it."""
        return repr(
            (
                self.paper,
                None if self.data is None else str(self.data),
                self.models,
                self.generator,
                self.is_stand_in,
                self.is_small,
                self.seed,
            )
        )

    @property
    def command(self) -> str:
        """Return the command that gives the same tables, without places on this machine."""
        words = ["weakspot lab reproduce", self.paper]
        words += ["--stand-in"] if self.is_stand_in else ["--data DIR"]
        words += ["--small"] if self.is_small else []
        words += [f"--models {name}" for name in self.models]
        words += [f"--generator {self.generator}"] if self.generator else []
        words += [f"--seed {self.seed}"] if self.seed else []
        return " ".join(words)

    def pick(self, full: Value, small: Value) -> Value:
        """Return the setting of the full run or that of the small one."""
        return small if self.is_small else full
