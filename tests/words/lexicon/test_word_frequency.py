import csv
import io

from weakspot.words.caption_rule import WordFrequency, frequency_table


def test_frequency_table__counts_and_difference_of_shares():
    one = WordFrequency(
        class_name="no dog", words="wet road", failed_with=3, n_failed=4, right_with=1, n_right=10
    )
    assert one.difference == 0.65
    (line,) = csv.DictReader(io.StringIO(frequency_table([one])))
    assert line == {
        "class": "no dog",
        "words": "wet road",
        "failed_with": "3",
        "n_failed": "4",
        "right_with": "1",
        "n_right": "10",
        "difference": "0.65",
    }
