"""Columns and tables of any library."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from weakspot.core.errors import DataError
from weakspot.project.given import arrow_table, check_order, plain_values


@pytest.mark.parametrize("column", [{"y": [1]}, {1, 2}, pd.DataFrame({"y": [1]})])
def test_plain_values__no_column__says_so(column):
    with pytest.raises(DataError, match="'labels' is not a column"):
        plain_values(column, "labels")


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_arrow_table__numpy_times__are_times(unit):
    table = arrow_table({"t": np.array(["2024-05-01", "NaT"], dtype=f"datetime64[{unit}]")})
    assert pa.types.is_temporal(table.schema.field("t").type)
    assert table.column("t").null_count == 1


def test_arrow_table__what_pandas_writes_for_nothing__is_nothing():
    frame = pd.DataFrame(
        {
            "text": pd.Series(["a", pd.NA], dtype="string"),
            "number": pd.Series([1, pd.NA], dtype="Int64"),
            "time": pd.Series([pd.Timestamp("2024-05-01"), pd.NaT]),
        }
    )
    table = arrow_table(frame)
    assert [column.null_count for column in table.columns] == [1, 1, 1]
    assert table.column("number").to_pylist() == [1, None]


def test_arrow_table__numbers_beyond_64_bits__are_text():
    assert arrow_table({"n": [2**70, 1]}).column("n").to_pylist() == [str(2**70), "1"]


def test_arrow_table__categories_of_views__as_polars_gives_them():
    codes = pa.array([0, 1, None, 0], pa.uint32())
    views = pa.array(["fog", "sun"]).cast(pa.string_view())
    table = pa.table({"weather": pa.DictionaryArray.from_arrays(codes, views)})

    column = arrow_table(table).column("weather")

    assert column.type == pa.string()
    assert column.to_pylist() == ["fog", "sun", None, "fog"]


def test_arrow_table__a_lazy_frame__is_collected():
    class LazyFrame:
        def collect(self):
            return pd.DataFrame({"a": [1]})

    assert arrow_table(LazyFrame()).to_pylist() == [{"a": 1}]


@pytest.mark.parametrize(("names", "said"), [(["a", "a"], "one name"), (["", "a"], "no name")])
def test_arrow_table__names_that_name_no_column__refused(names, said):
    with pytest.raises(DataError, match=said):
        arrow_table(pd.DataFrame([[1, 2]], columns=names))


def test_check_order__the_same_rows_in_another_order__refused():
    labels = pd.Series([0, 1, 0])
    shuffled = pd.DataFrame({"a": [1, 2, 3]}, index=[2, 0, 1])
    with pytest.raises(DataError, match=r"metadata\.loc\[labels\.index\]"):
        check_order({"labels": labels, "metadata": shuffled})
