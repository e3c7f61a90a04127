"""Repair plans as files, so that a repair can be carried out again, there or elsewhere."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from weakspot.core.errors import ConfigError, raise_all
from weakspot.core.repairs import RepairPlan
from weakspot.core.slices import FailureSlice

FORMAT = "weakspot repair plan"
VERSION = 1
REWRITE = "Use a plan.json that weakspot repair wrote."
_N_SHOWN = 5


def plan_with(plan: RepairPlan, slices: Sequence[FailureSlice]) -> RepairPlan:
    """Return a plan that holds its slices themselves.

    Raises:
        ConfigError: if a slice of the plan is not among those given.
    """
    by_id = {found.slice_id: found for found in slices}
    missing = [name for name in plan.slice_ids if name not in by_id]
    if missing:
        raise ConfigError("The plan names slices that are not there.", where="plan", given=missing)
    return plan.model_copy(update={"slices": tuple(by_id[name] for name in plan.slice_ids)})


def plan_text(plan: RepairPlan) -> str:
    """Return a plan as the content of a file."""
    return (
        json.dumps(
            {"format": FORMAT, "version": VERSION, "plan": json.loads(plan.model_dump_json())},
            indent=1,
        )
        + "\n"
    )


def read_plan(path: Path) -> RepairPlan:
    """Read a plan that `plan_text` made, with its slices.

    Raises:
        ConfigError: if the file is no plan, of another version, has unknown or wrong fields, or no slices; with what is wrong.
    """
    plan = _parse(_content(path), where=str(path))
    if not plan.slices:
        raise ConfigError(
            "The plan holds no slices, so there is nothing to repair.", where=str(path), fix=REWRITE
        )
    own = tuple(found.slice_id for found in plan.slices)
    if own != plan.slice_ids:
        raise ConfigError(
            "The slices of the plan are not those that slice_ids names: one of the two was edited.",
            where=str(path),
            given=list(plan.slice_ids)[:_N_SHOWN],
            fix=f"Set slice_ids to {list(own)[:_N_SHOWN]}, or use the plan as it was written.",
        )
    return plan


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"The plan cannot be read: {error.strerror or error}.",
            where=str(path),
            fix="Correct the path.",
        ) from error
    except ValueError as error:
        raise ConfigError(f"The plan is no JSON: {error}.", where=str(path), fix=REWRITE) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ConfigError("This is no repair plan.", where=str(path), fix=REWRITE)
    if content.get("version") != VERSION:
        raise ConfigError(
            f"The plan is of another version than {VERSION}.",
            where=str(path),
            given=content.get("version"),
            fix="Update weakspot.",
        )
    unknown = sorted(set(content) - {"format", "version", "plan"})
    if unknown:
        raise ConfigError(
            "The plan has unknown fields.", where=str(path), given=unknown, fix="Remove them."
        )
    return content


def _parse(content: dict[str, Any], *, where: str) -> RepairPlan:
    try:
        return RepairPlan.model_validate_json(json.dumps(content.get("plan")))
    except ValidationError as error:
        found = error.errors(include_url=False)
        problems = [
            f"{'.'.join(map(str, one['loc'])) or 'plan'}: {one['msg']}" for one in found[:_N_SHOWN]
        ]
        raise_all(
            problems, error=ConfigError, what="The plan cannot be used:", where=where, fix=REWRITE
        )
        raise
