import re
from xml.etree import ElementTree

from weakspot.data.charts import TimeBar, time_bars


def _boxes(drawn):
    return [
        tuple(float(one) for one in re.search(r'x="([\d.]+)".*width="([\d.]+)"', line).groups())
        for line in drawn.splitlines()
        if line.startswith("<rect")
    ]


def test_time_bars__one_begins_where_the_other_ended_and_waiting_is_hollow():
    drawn = time_bars(
        [
            TimeBar(name="ingest", seconds=3.0, waiting=0.5),
            TimeBar(name="a < b", seconds=1.0, note="1.0 s"),
        ],
        title="Run 1",
    )
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    whole, busy, second, _ = _boxes(drawn)
    assert busy[1] * 2 == whole[1] == 3 * second[1]
    assert second[0] == whole[0] + whole[1]
    assert "a &lt; b" in drawn
