"""Asking an image generator, whatever it does: a broken order costs that order; only a generator that is gone ends the work."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from weakspot.app.model_answers import failing_as_model_error, storable
from weakspot.core.drawn import PictureOrder
from weakspot.core.errors import MissingExtraError, ModelError, RefusedPromptError, UnavailableError
from weakspot.core.roles import GeneratedPicture, ImageGenerator

MOST_FAILURES_IN_A_ROW = 16
MOST_FAILURES_AT_FIRST = 2
NO_PICTURE = "no picture came"
_WHO = "image generator"
_SHOWN = 300


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What a generator gave for an order.

    Args:
        order: what was asked for.
        made: the picture; None if there is none.
        failure: why there is none.
    """

    order: PictureOrder
    made: GeneratedPicture | None = None
    failure: str = ""


@dataclass(kw_only=True, eq=False)
class PatientAsking:
    """Asks a generator batch by batch, and one by one where a batch fails.

    Args:
        generator: words to pictures.
        has_drawn: whether it has ever given a picture; one that has not is given up sooner.
        refused: prompts that it refused, with what it said.
    """

    generator: ImageGenerator
    has_drawn: bool = False
    refused: dict[str, RefusedPromptError] = field(default_factory=dict)
    _n_bad_in_a_row: int = 0

    def answers(self, orders: Sequence[PictureOrder]) -> Iterator[list[Answer]]:
        """Yield answers in the order of orders, leaving out refused prompts; all at once unless the batch fails.

        Raises:
            MissingExtraError: if the generator lacks a library.
            UnavailableError: if it cannot be reached.
            ModelError: if it failed too often in a row.
        """
        wanted = [order for order in orders if order.prompt not in self.refused]
        if not wanted:
            return
        try:
            made = self._made(wanted)
        except ModelError as error:
            self._end_if_gone(error)
            if len(wanted) > 1:
                yield from self._one_by_one(wanted)
            elif not self._is_refusal(error, wanted[0]):
                yield from self._failed(wanted[0], error)
            return
        yield from self._taken(wanted, made)

    def _one_by_one(self, orders: Sequence[PictureOrder]) -> Iterator[list[Answer]]:
        for order in orders:
            yield from self.answers([order])

    def _made(self, orders: Sequence[PictureOrder]) -> list[GeneratedPicture | None]:
        with failing_as_model_error(_WHO):
            made = self.generator.generate([order.prompt for order in orders], seeds=[order.seed for order in orders])
            found = list(made)
            if len(found) != len(orders):
                raise ModelError(f"The {_WHO} gave {len(found)} pictures for {len(orders)} prompts.")
            return [picture if isinstance(picture, GeneratedPicture) else None for picture in found]

    def _taken(self, orders: Sequence[PictureOrder], made: Sequence[GeneratedPicture | None]) -> Iterator[list[Answer]]:
        """Yield the answers of a batch; empty places in it are failures of single orders."""
        for picture in made:
            self._n_bad_in_a_row = 0 if picture is not None else self._n_bad_in_a_row + 1
            self.has_drawn |= picture is not None
        failures = ["" if picture is not None else NO_PICTURE for picture in made]
        yield [
            Answer(order=order, made=picture, failure=failure)
            for order, picture, failure in zip(orders, made, failures, strict=True)
        ]
        self._end_if_too_many(NO_PICTURE)

    def _failed(self, order: PictureOrder, error: ModelError) -> Iterator[list[Answer]]:
        said = storable(str(error))[:_SHOWN]
        self._n_bad_in_a_row += 1
        yield [Answer(order=order, failure=said)]
        self._end_if_too_many(said, error)

    def _is_refusal(self, error: ModelError, order: PictureOrder) -> bool:
        if isinstance(error, RefusedPromptError):
            self.refused[order.prompt] = error
        return isinstance(error, RefusedPromptError)

    def _end_if_gone(self, error: ModelError) -> None:
        if isinstance(error.__cause__, UnavailableError | MissingExtraError):
            raise error.__cause__ from None

    def _end_if_too_many(self, said: str, error: ModelError | None = None) -> None:
        most = MOST_FAILURES_IN_A_ROW if self.has_drawn else MOST_FAILURES_AT_FIRST
        if self._n_bad_in_a_row >= most:
            raise ModelError(
                f"The {_WHO} failed {self._n_bad_in_a_row} times in a row. The last time: {said}",
                where=self.generator.generator_id,
                fix="See that it works, and run the command again: what was drawn is kept.",
            ) from error
