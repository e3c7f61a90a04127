"""What every repair strategy is: checked parameters, and a choice of samples with what each counts."""

from dataclasses import dataclass

from weakspot.core.bounds import check_bounds
from weakspot.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """Base of strategies: the fields are the parameters; `select` chooses what the last layer is retrained on."""

    is_baseline = False

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True, kw_only=True)
class ColumnStrategy(Strategy):
    """Base of strategies that know groups: a group is a class and a value of a metadata column.

    Args:
        column: metadata column whose values, with the class, are the groups.
    """

    column: str

    def __post_init__(self) -> None:
        if not self.column:
            raise ConfigError("The setting column must name a metadata column.", given=self.column)
        super().__post_init__()
