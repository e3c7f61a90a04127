"""The fixture `weakspot_check`, for tests of models.

Every run of pytest beside an installed weakspot loads this file: it imports nothing heavy before the fixture is asked for.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from weakspot.gate.result import PolicyResult
    from weakspot.project.project import Project

POLICY, PROJECT = "--weakspot-policy", "--weakspot-project"
SHOWN = 50


class WeakspotCheck(Protocol):
    """Judges a project by a policy, and fails the test if the policy is violated."""

    def __call__(
        self,
        project: "Path | str | Project | None" = None,
        policy: Path | str | None = None,
        *,
        baseline: Path | str | None = None,
    ) -> "PolicyResult":
        """Return what became of the policy.

        Args:
            project: its folder; by default what `--weakspot-project` says, or the present folder.
            policy: the policy file; by default what `--weakspot-policy` says, or policy.toml in the project.
            baseline: a project or baseline file to compare with.
        """


def pytest_addoption(parser: Any) -> None:
    """Add the options of the fixture."""
    group = parser.getgroup("weakspot")
    group.addoption(
        POLICY,
        default=None,
        metavar="FILE",
        help="Policy that weakspot_check judges by when a test names none.",
    )
    group.addoption(
        PROJECT,
        default=None,
        metavar="FOLDER",
        help="Project that weakspot_check judges when a test names none.",
    )


@pytest.fixture  # type: ignore[untyped-decorator]
def weakspot_check(request: Any) -> WeakspotCheck:
    """Return a function that judges a project by a policy and fails the test if the policy is violated."""

    def judge(
        project: "Path | str | Project | None" = None,
        policy: Path | str | None = None,
        *,
        baseline: Path | str | None = None,
    ) -> "PolicyResult":
        __tracebackhide__ = True
        wanted = project if project is not None else request.config.getoption(PROJECT) or "."
        rules = policy if policy is not None else request.config.getoption(POLICY)
        result = _result(wanted, rules, baseline)
        if not result.is_kept:
            pytest.fail(_message(result), pytrace=False)
        return result

    return judge


def _result(project: Any, policy: Path | str | None, baseline: Path | str | None) -> "PolicyResult":
    from weakspot.core.errors import WeakspotError
    from weakspot.gate.check import CheckRequest, check
    from weakspot.gate.policy import load_policy
    from weakspot.gate.runs import load_baseline
    from weakspot.project.project import Project

    __tracebackhide__ = True
    try:
        opened = project if isinstance(project, Project) else Project.open(project)
        path = Path(policy) if policy is not None else opened.folder / "policy.toml"
        known = None if baseline is None else load_baseline(Path(baseline))
        asked = CheckRequest(policy=load_policy(path), policy_name=path.name, baseline=known)
        return check(opened, asked)[0]
    except WeakspotError as error:
        raise pytest.fail.Exception(
            f"weakspot could not judge the model. {error}", pytrace=False
        ) from None


def _message(result: "PolicyResult") -> str:
    lines = [f"  {entry.rule}: {entry.sentence}" for entry in result.failing]
    more = [f"  … and {len(lines) - SHOWN} more."] if len(lines) > SHOWN else []
    return "\n".join([result.headline, *lines[:SHOWN], *more])
