"""Compiled loops of the counting; imported on first use only.

Letters of shapes: *a* attributes, *n* samples, *t* tuples of attributes, *b* blocks, *m* combinations of values.
"""

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, IntArray
from weakspot.core.compiled import kernel

CHUNK_ROWS = 4096


@kernel()
def value_counts(codes: AnyArray, n_codes: int) -> IntArray:
    """Return how often every code occurs in every column [a, n_codes] of codes [n, a]."""
    counts = np.zeros((codes.shape[1], n_codes), dtype=np.int64)
    for row in range(codes.shape[0]):
        for column in range(codes.shape[1]):
            counts[column, codes[row, column]] += 1
    return counts


@kernel()
def recode(codes: AnyArray, new_codes: AnyArray, columns: AnyArray) -> None:
    """Write codes [n, a], with every code replaced by its new one [a, n_codes], into columns [a, n]."""
    for start in range(0, codes.shape[0], CHUNK_ROWS):
        stop = min(start + CHUNK_ROWS, codes.shape[0])
        for column in range(codes.shape[1]):
            for row in range(start, stop):
                columns[column, row] = new_codes[column, codes[row, column]]


@kernel()
def cover_tuples(
    tuples: IntArray, sizes: IntArray, limits: tuple[int, int], blocks: IntArray, block_of: IntArray
) -> int:
    """Choose blocks of attributes so that every tuple lies inside one, greedily, and return their number.

    Counting a block once gives the counts of all tuples inside it, so few blocks mean few passes over the samples.

    Args:
        tuples: [t, 3] attributes, ascending, -1 where a tuple has fewer; longer tuples should come last.
        sizes: [a] codes of every attribute.
        limits: a block grows only while its table has at most so many cells, and while summing the table for all its triples
            takes at most so many steps.
        blocks: [t, l] where the attributes of blocks of at most l are written, ascending, -1 at the end.
        block_of: [t] where the block of every tuple is written; -1 to begin with.
    """
    nobody = len(sizes)
    pending = np.zeros((nobody + 1, nobody + 1, nobody + 1), dtype=np.int32)
    for place in range(len(tuples)):
        second, third = tuples[place, 1], tuples[place, 2]
        pending[
            tuples[place, 0], second if second >= 0 else nobody, third if third >= 0 else nobody
        ] = place + 1
    n_blocks = 0
    for place in range(len(tuples) - 1, -1, -1):
        if block_of[place] >= 0:
            continue
        for slot in range(blocks.shape[1]):
            blocks[n_blocks, slot] = tuples[place, slot] if slot < tuples.shape[1] else -1
        length = _grow_block(blocks[n_blocks], pending, sizes, limits)
        _mark_inside(blocks[n_blocks, :length], pending, block_of, n_blocks)
        n_blocks += 1
    return n_blocks


@kernel()
def _grow_block(
    block: IntArray, pending: AnyArray, sizes: IntArray, limits: tuple[int, int]
) -> int:
    """Add attributes while they bring further tuples inside; return how many there are then."""
    length, n_cells = 0, 1
    while length < len(block) and block[length] >= 0:
        n_cells *= sizes[block[length]]
        length += 1
    while length < len(block):
        n_triples = max(1, (length + 1) * length * (length - 1) // 6)
        limit = min(limits[0], limits[1] // n_triples)
        best, best_gain = -1, 0
        for attribute in range(len(sizes)):
            if n_cells * sizes[attribute] <= limit:
                gain = _gain(attribute, block[:length], pending)
                if gain > best_gain:
                    best, best_gain = attribute, gain
        if best < 0:
            break
        n_cells *= sizes[best]
        slot = length
        while slot > 0 and block[slot - 1] > best:
            block[slot] = block[slot - 1]
            slot -= 1
        block[slot] = best
        length += 1
    return length


@kernel()
def _gain(attribute: int, block: IntArray, pending: AnyArray) -> int:
    nobody = pending.shape[0] - 1
    gain = int(pending[attribute, nobody, nobody] > 0)
    for second_place in range(len(block)):
        second = block[second_place]
        if second == attribute:
            return 0
        gain += int(pending[min(attribute, second), max(attribute, second), nobody] > 0)
        for third_place in range(second_place + 1, len(block)):
            third = block[third_place]
            low, high = min(attribute, second), max(attribute, third)
            middle = attribute + second + third - low - high
            gain += int(pending[low, middle, high] > 0)
    return gain


@kernel()
def _mark_inside(block: IntArray, pending: AnyArray, block_of: IntArray, number: int) -> None:
    n_ends = len(block) + 1
    for first in range(len(block)):
        for second in range(first + 1, n_ends):
            # A tuple of one attribute is padded twice, so the last place may repeat.
            for third in range(min(second + 1, n_ends - 1), n_ends):
                middle = block[second] if second < len(block) else pending.shape[0] - 1
                last = block[third] if third < len(block) else pending.shape[0] - 1
                place = pending[block[first], middle, last]
                if place > 0:
                    block_of[place - 1] = number
                    pending[block[first], middle, last] = 0


@kernel()
def count_blocks(
    columns: AnyArray,
    sizes: IntArray,
    blocks: IntArray,
    plan: tuple[IntArray, IntArray, IntArray, IntArray],
    cells: AnyArray,
) -> None:
    """Add the number of samples in every cell of every tuple that lies in one of the blocks.

    Args:
        columns: [a, n] codes.
        sizes: [a] codes of every attribute.
        blocks: [b, l] attributes, -1 at the end.
        plan: tuples [t, 3]; where the cells of every tuple begin [t]; the tuples, grouped by block; where every block's group
            begins [b + 1].
        cells: all cells of all tuples, the last attribute of a tuple fastest.
    """
    tuples, offsets, grouped, starts = plan
    for number in range(len(blocks)):
        length = 0
        while length < blocks.shape[1] and blocks[number, length] >= 0:
            length += 1
        block = blocks[number, :length]
        n_cells = 1
        for attribute in block:
            n_cells *= sizes[attribute]
        first = grouped[starts[number]]
        if starts[number + 1] == starts[number] + 1:
            # Blocks grow only if that brings another tuple inside, so the only tuple of a block is the block itself.
            _count_block(columns, block, sizes, cells[offsets[first] : offsets[first] + n_cells])
            continue
        table = np.zeros(n_cells, dtype=np.uint32)
        _count_block(columns, block, sizes, table)
        for slot in range(starts[number], starts[number + 1]):
            place = grouped[slot]
            _add_margin(table, block, sizes, tuples[place], cells[offsets[place] :])


@kernel()
def _count_block(columns: AnyArray, block: IntArray, sizes: IntArray, table: AnyArray) -> None:
    n_rows = columns.shape[1]
    keys = np.empty(min(CHUNK_ROWS, n_rows), dtype=np.uint32)
    for start in range(0, n_rows, CHUNK_ROWS):
        n_now = min(CHUNK_ROWS, n_rows - start)
        keys[:] = 0
        for attribute in block:
            size = np.uint32(sizes[attribute])
            part = columns[attribute, start : start + n_now]
            for row in range(n_now):
                keys[row] = keys[row] * size + part[row]
        for row in range(n_now):
            table[keys[row]] += np.uint32(1)


@kernel()
def _add_margin(
    table: AnyArray, block: IntArray, sizes: IntArray, attributes: IntArray, cells: AnyArray
) -> None:
    last = len(block) - 1
    steps = _steps(block, sizes, attributes)
    digits = np.zeros(len(block), dtype=np.int64)
    run, step = sizes[block[last]], steps[last]
    place = 0
    for start in range(0, len(table), run):
        if step == 0:
            total = np.uint32(0)
            for digit in range(run):
                total += table[start + digit]
            cells[place] += total
        else:
            for digit in range(run):
                cells[place + digit] += table[start + digit]
        axis = last - 1
        while axis >= 0:
            digits[axis] += 1
            place += steps[axis]
            if digits[axis] < sizes[block[axis]]:
                break
            place -= steps[axis] * digits[axis]
            digits[axis] = 0
            axis -= 1


@kernel()
def _steps(block: IntArray, sizes: IntArray, attributes: IntArray) -> IntArray:
    """Return how far every attribute of the block moves within the cells of a tuple; 0 for those that it has not."""
    steps = np.zeros(len(block), dtype=np.int64)
    step = 1
    for place in range(len(block) - 1, -1, -1):
        if block[place] in (attributes[0], attributes[1], attributes[2]):
            steps[place] = step
            step *= sizes[block[place]]
    return steps


@kernel()
def count_supported(
    cells: AnyArray,
    ranges: tuple[IntArray, IntArray],
    tuples: IntArray,
    offsets: IntArray,
    min_support: int,
) -> int:
    """Return how many cells of known values hold enough samples; arguments as for `find_supported`."""
    sizes, first_codes = ranges
    n_found = 0
    for place in range(len(tuples)):
        one, two, three = tuples[place, 0], tuples[place, 1], tuples[place, 2]
        second_start, second_size = (first_codes[two], sizes[two]) if two >= 0 else (0, 1)
        third_start, third_size = (first_codes[three], sizes[three]) if three >= 0 else (0, 1)
        for first in range(first_codes[one], sizes[one]):
            for second in range(second_start, second_size):
                row = offsets[place] + (first * second_size + second) * third_size
                for cell in range(row + third_start, row + third_size):
                    n_found += int(cells[cell] >= min_support)
    return n_found


@kernel()
def find_supported(
    cells: AnyArray,
    ranges: tuple[IntArray, IntArray],
    tuples: IntArray,
    offsets: IntArray,
    min_support: int,
    found: tuple[AnyArray, AnyArray, IntArray, IntArray],
) -> None:
    """Write down every combination of known values that enough samples have.

    Args:
        cells: number of samples in every cell.
        ranges: number of codes, and first code that is a known value, of every attribute.
        tuples: [t, 3] attributes, -1 where a tuple has fewer.
        offsets: [t] first cell of every tuple.
        min_support: least number of samples.
        found: where attributes [m, 3], codes [m, 3], numbers of samples [m] and cells [m] are written.
    """
    sizes, first_codes = ranges
    attributes, codes, n_inside, places = found
    number = 0
    for place in range(len(tuples)):
        one, two, three = tuples[place, 0], tuples[place, 1], tuples[place, 2]
        second_start, second_size = (first_codes[two], sizes[two]) if two >= 0 else (0, 1)
        third_start, third_size = (first_codes[three], sizes[three]) if three >= 0 else (0, 1)
        for first in range(first_codes[one], sizes[one]):
            for second in range(second_start, second_size):
                row = offsets[place] + (first * second_size + second) * third_size
                for third in range(third_start, third_size):
                    if cells[row + third] >= min_support:
                        attributes[number, 0], attributes[number, 1], attributes[number, 2] = (
                            one,
                            two,
                            three,
                        )
                        codes[number, 0], codes[number, 1], codes[number, 2] = first, second, third
                        n_inside[number] = cells[row + third]
                        places[number] = row + third
                        number += 1


@kernel()
def restore_codes(attributes: AnyArray, codes: AnyArray, old_codes: AnyArray) -> None:
    """Replace new codes [m, 3] by those they stand for, 0 where a combination has no attribute."""
    for place in range(len(codes)):
        for slot in range(codes.shape[1]):
            attribute = attributes[place, slot]
            codes[place, slot] = old_codes[attribute, codes[place, slot]] if attribute >= 0 else 0


@kernel()
def raise_maxima(
    columns: AnyArray,
    rows: AnyArray,
    layout: tuple[IntArray, IntArray, tuple[IntArray, IntArray, IntArray, IntArray], int],
    combinations: tuple[IntArray, IntArray, DoubleArray, DoubleArray],
    totals: tuple[int, int, int],
    maxima: DoubleArray,
) -> None:
    """Raise the maximum of every shuffle to the largest score of any combination in it.

    Args:
        columns: [a, n] codes.
        rows: [s, k] for every shuffle the samples that fail (or do not).
        layout: number of codes of every attribute; blocks and plan as `count_blocks` takes them; number of cells.
        combinations: the cell of every combination [m]; its samples [m]; the part of its score that does not depend on failures
            [m]; x log x for x = 0, 1, ...
        totals: number of samples, of failures, and 1 if the rows are those that do not fail.
        maxima: [s].
    """
    sizes, blocks, plan, n_cells = layout
    chosen = np.empty((columns.shape[0], rows.shape[1]), dtype=columns.dtype)
    cells = np.empty(n_cells, dtype=np.uint32)
    for shuffle in range(len(rows)):
        for column in range(len(columns)):
            for place in range(rows.shape[1]):
                chosen[column, place] = columns[column, rows[shuffle, place]]
        cells[:] = 0
        count_blocks(chosen, sizes, blocks, plan, cells)
        maxima[shuffle] = max(maxima[shuffle], _largest_score(cells, combinations, totals))


@kernel()
def _largest_score(
    cells: AnyArray,
    combinations: tuple[IntArray, IntArray, DoubleArray, DoubleArray],
    totals: tuple[int, int, int],
) -> float:
    places, n_inside, fixed, powers = combinations
    n_samples, n_failed, holds_right = totals
    largest = -np.inf
    for place in range(len(places)):
        inside = n_inside[place]
        count = np.int64(cells[places[place]])
        failed = inside - count if holds_right else count
        if failed * n_samples > inside * n_failed:
            evidence = powers[failed] + powers[inside - failed] + powers[n_failed - failed]
            evidence += powers[n_samples - inside - n_failed + failed]
            largest = max(largest, evidence + fixed[place])
    return largest
