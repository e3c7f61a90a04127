"""An adversarial set, as the terminal shows it."""

from collections.abc import Iterator

from weakspot.app.adversarial.page import class_sentence, distance_line, explanation
from weakspot.app.adversarial.records import AdversarialSet


def adversarial_lines(record: AdversarialSet) -> Iterator[str]:
    """Yield a set line by line."""
    yield from explanation(record)
    yield from (f"  {class_sentence(one)}" for one in record.classes)
    if record.transfer is not None:
        yield "Other classifiers (share that is wrong; true label not among the 3 likeliest):"
        for cell in record.transfer.cells:
            low, high = 100 * cell.interval.low, 100 * cell.interval.high
            own = " (made for it)" if cell.is_own else ""
            yield (
                f"  {cell.set_name} on {cell.model}{own}: {100 * cell.rate:.0f} % ({low:.0f}-{high:.0f}) of {cell.n_pictures}; "
                f"{100 * cell.rate_of_top:.0f} %"
            )
    for space in dict.fromkeys(row.space for row in record.distances):
        yield f"Distance to the {record.reference}, in the space of {space}:"
        yield from (f"  {distance_line(row)}" for row in record.distances if row.space == space)
    yield from record.notes
