"""The release gate as a test: `pytest test_model.py`."""

from pathlib import Path

HERE = Path(__file__).parent


def test_model__may_be_released(weakspot_check):
    result = weakspot_check(HERE, HERE / "policy.toml", baseline=HERE / "baseline.json")
    assert result.is_kept
