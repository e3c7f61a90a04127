"""Write constraints-dev.txt: the installed versions of everything development needs directly.

python tools/lock_development.py            write the file from the environment this runs in
python tools/lock_development.py --check    only say whether the file fits that environment
"""

import argparse
import difflib
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "constraints-dev.txt"
CONSTRAINTS = ROOT / "constraints.txt"
TOOLS = ROOT / "requirements-test.txt"
DOCUMENTS = ROOT / "requirements-docs.txt"
HEADER = """\
# Versions that development and tests were last run with: direct dependencies, extras, test tools.
# What these need in turn is not listed. To install exactly these versions, give pip both files:
#   --constraint constraints.txt --constraint constraints-dev.txt
# To renew: run `sh scripts/test` in a fresh checkout, where it takes the newest versions that
# constraints.txt allows; when everything passes, run `.venv/bin/python tools/lock_development.py`.
"""


def main() -> int:
    """Write or check the file; the exit code is 1 if it does not fit or versions contradict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="Write nothing.")
    asked = parser.parse_args()
    groups = wanted_groups()
    installed = installed_versions(name for names in groups.values() for name in names)
    problems = contradictions(installed)
    if problems:
        print("error: constraints.txt wants other versions:\n  " + "\n  ".join(problems))
        return 1
    text = lock_text(groups, installed)
    if asked.check:
        return report_difference(text)
    LOCK.write_text(text, encoding="utf-8")
    print(f"{LOCK.name}: {len(installed)} versions")
    return 0


def wanted_groups() -> dict[str, list[str]]:
    """Return the names of what is needed, by heading, each under the first that asks for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    asked = {
        "weakspot itself": names_of(project["dependencies"]),
        "extras": names_of(extras),
        "tools": names_of([*requirement_lines(TOOLS), *requirement_lines(DOCUMENTS)]),
        "named in constraints.txt": names_of(requirement_lines(CONSTRAINTS)),
    }
    own = canonicalize_name(project["name"])
    seen = {str(own)}
    groups: dict[str, list[str]] = {}
    for heading, names in asked.items():
        groups[heading] = sorted(set(names) - seen)
        seen.update(names)
    return groups


def requirement_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a requirements file that name a package."""
    for line in path.read_text(encoding="utf-8").splitlines():
        named = line.split(" #", maxsplit=1)[0].strip()
        if named and not named.startswith(("#", "-")):
            yield named


def names_of(lines: Iterable[str]) -> list[str]:
    """Return the normalised names in lines such as `moto[server]>=5.0`, for this machine."""
    found = [Requirement(line) for line in lines]
    return [str(canonicalize_name(one.name)) for one in found if is_for_here(one)]


def is_for_here(requirement: Requirement) -> bool:
    """Return whether a requirement holds on this machine and Python."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def installed_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of what is installed, without a local part such as `+cpu`."""
    versions = {}
    for name in names:
        try:
            versions[name] = Version(metadata.version(name)).public
        except metadata.PackageNotFoundError:
            continue
    return versions


def contradictions(installed: Mapping[str, str]) -> list[str]:
    """Return a sentence for every installed version that constraints.txt does not allow."""
    wanted = [Requirement(line) for line in requirement_lines(CONSTRAINTS)]
    versions = [(one, installed.get(str(canonicalize_name(one.name)))) for one in wanted]
    return [
        f"{one} is asked for, {version} is installed"
        for one, version in versions
        if version is not None and is_for_here(one) and version not in one.specifier
    ]


def lock_text(groups: Mapping[str, Iterable[str]], installed: Mapping[str, str]) -> str:
    """Return the content of the file."""
    parts = [HEADER]
    for heading, names in groups.items():
        pins = [f"{name}=={installed[name]}" for name in names if name in installed]
        if pins:
            parts.append("\n".join([f"# {heading}", *pins]) + "\n")
    missing = [name for names in groups.values() for name in names if name not in installed]
    if missing:
        parts.append(f"# not installed, so left open: {', '.join(sorted(missing))}\n")
    return "\n".join(parts)


def report_difference(text: str) -> int:
    """Print how the file differs from what it should hold, and return the exit code."""
    kept = LOCK.read_text(encoding="utf-8") if LOCK.exists() else ""
    if kept == text:
        return 0
    lines = difflib.unified_diff(
        kept.splitlines(), text.splitlines(), LOCK.name, "installed", lineterm=""
    )
    print("\n".join(lines))
    print("to do: python tools/lock_development.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
