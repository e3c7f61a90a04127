"""Questions that earlier versions wrote to `hypotheses.jsonl`: asked is asked, so they open the ledger of a project that has them."""

import json
from pathlib import Path

HYPOTHESES_FILE = "hypotheses.jsonl"


def earlier_batches(folder: Path) -> list[list[tuple[str, float]]]:
    """Return (question, p-value) of every look, in the batches in which they were written, each question once.

    A line that was cut off by a full disk is passed over.
    """
    path = folder / HYPOTHESES_FILE
    lines = path.read_bytes().decode("utf-8", "replace").splitlines() if path.exists() else []
    batches: dict[str, list[tuple[str, float]]] = {}
    known: set[str] = set()
    for line in lines:
        try:
            entry = json.loads(line)
            asked = [entry["class"], entry["phrase"], entry.get("threshold"), entry["measured_on"]]
            key = f"look {json.dumps(asked, ensure_ascii=False)}"
            p_value = min(max(float(entry.get("p_value", 1.0)), 0.0), 1.0)
            when = str(entry.get("time", key))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if key not in known:
            known.add(key)
            batches.setdefault(when, []).append((key, p_value))
    return list(batches.values())
