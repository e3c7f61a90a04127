"""Two tables one after the other."""

import pyarrow as pa


def table_after(first: pa.Table, second: pa.Table) -> pa.Table:
    """Return the rows of two tables with the columns of both, in the types of the first."""
    for place, name in enumerate(second.column_names):
        wanted = first.schema.field(name).type if name in first.column_names else pa.null()
        if not pa.types.is_null(wanted):
            second = second.set_column(place, name, _cast(second.column(name), wanted))
    return pa.concat_tables([first, second], promote_options="default")


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | pa.Array:
    try:
        is_coded = pa.types.is_dictionary(column.type)
        return (column.cast(column.type.value_type) if is_coded else column).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(column), wanted)
