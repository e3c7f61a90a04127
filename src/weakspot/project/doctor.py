"""What is installed, reachable and cached on a machine, what is wrong with a project, and how to mend what is not."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path
from typing import Literal

from weakspot.core.errors import WeakspotError
from weakspot.core.run import CheckState, PreflightCheck
from weakspot.models.embedded import integer_tower
from weakspot.models.embedded.encoder import FILES, SENTENCE_MODEL
from weakspot.models.embedded.image_tower import float_tower_path, integer_tower_path
from weakspot.models.embedded.patch_tokens import PATCH_MODEL, token_graph_path
from weakspot.models.onnx.session import available_providers, choose_provider, fallback_notes
from weakspot.models.packages.pip_download import index_answers, pip_command
from weakspot.models.packages.registry_source import (
    CACHE_VARIABLE,
    WHEELS_VARIABLE,
    cache_folder,
    is_cached,
)
from weakspot.models.transformers import source
from weakspot.project import machine
from weakspot.project.example_data import GROCERIES
from weakspot.project.project import Project
from weakspot.run.embedding import HUB_MODELS
from weakspot.run.ingestion import FIX, find_missing_images
from weakspot.run.settings import SETTINGS_FILE
from weakspot.run.settings_file import load_settings
from weakspot.run.witnesses import WITNESS_FILES

State = Literal["ok", "missing", "broken"]
NEEDED_DISK_BYTES = 1_000_000_000
NEEDED_MEMORY_BYTES = 1_500_000_000
OLDEST_PYTHON = (3, 11)
_THOUSAND = 1000
_EXTRAS = ("torch", "hub", "sklearn", "web", "ray", "generate", "all")
_MODULES = {"scikit-learn": "sklearn", "pillow": "PIL", "open-clip-torch": "open_clip"}


@dataclass(frozen=True, kw_only=True)
class DoctorFinding:
    """One thing that was looked at.

    Args:
        area: what was looked at, for example `library numpy`.
        state: ok, missing or broken.
        found: what is there, in one sentence.
        fix: what to do about it; empty when there is nothing to do.
        is_optional: whether weakspot works without it.
    """

    area: str
    state: State
    found: str
    fix: str = ""
    is_optional: bool = False


@dataclass(frozen=True, kw_only=True)
class _Surroundings:
    folder: Path
    cache: Path
    ask_network: bool
    timeout_seconds: float


def examine_machine(
    *,
    folder: Path | None = None,
    cache_dir: Path | None = None,
    ask_network: bool = True,
    timeout_seconds: float = 10.0,
) -> tuple[DoctorFinding, ...]:
    """Return everything worth knowing of the machine, the environment and the project.

    Args:
        folder: where to look for a project; by default the working directory.
        cache_dir: where downloads are kept; by default the user's cache folder.
        ask_network: whether the package index and the hub may be tried.
        timeout_seconds: how long each of them is waited for.
    """
    given = _Surroundings(
        folder=folder or Path.cwd(),
        cache=cache_folder(cache_dir),
        ask_network=ask_network,
        timeout_seconds=timeout_seconds,
    )
    examinations: tuple[Callable[[_Surroundings], Iterator[DoctorFinding]], ...] = (
        _python,
        _libraries,
        _processor,
        _engines,
        _memory_and_disk,
        _weights,
        _package_index,
        _model_hub,
        _project,
    )
    return tuple(finding for examine in examinations for finding in examine(given))


def _python(_: _Surroundings) -> Iterator[DoctorFinding]:
    found = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        yield DoctorFinding(
            area="python", state="broken", found=found, fix="Use Python 3.11 or newer."
        )
    else:
        yield DoctorFinding(area="python", state="ok", found=found)


def _libraries(_: _Surroundings) -> Iterator[DoctorFinding]:
    wanted = _requirements()
    problems = machine.import_problems([_module(name) for name in wanted])
    for name, extra in wanted.items():
        area = f"library {name}" if extra is None else f"extra {extra}: {name}"
        install = (
            "pip install --force-reinstall weakspot"
            if extra is None
            else f"pip install 'weakspot[{extra}]'"
        )
        version = machine.installed_version(name)
        problem = problems.get(_module(name))
        if version is None:
            yield DoctorFinding(
                area=area,
                state="missing",
                found="not installed",
                fix=install,
                is_optional=extra is not None,
            )
        elif problem is not None:
            culprit = "torchvision" if "torchvision" in problem else name
            fix = f"Reinstall {culprit} in a version that fits the rest (torch and torchvision belong together): {install}"
            yield DoctorFinding(
                area=area,
                state="broken",
                found=f"{version} does not import ({problem})",
                fix=fix,
                is_optional=extra is not None,
            )
        else:
            yield DoctorFinding(area=area, state="ok", found=version, is_optional=extra is not None)


def _requirements() -> dict[str, str | None]:
    """Return the libraries weakspot asks for, each with the extra to install for it, or None for those it always needs."""
    asking: dict[str, list[str | None]] = {}
    for line in requires("weakspot") or []:
        name = re.split(r"[\s\[<>=!~;(]", line, maxsplit=1)[0].lower().replace("_", "-")
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        if name != "weakspot":
            asking.setdefault(name, []).append(extra.group(1) if extra else None)
    return {
        name: None if None in extras else min(extras, key=_rank) for name, extras in asking.items()
    }


def _rank(extra: str | None) -> int:
    return _EXTRAS.index(extra) if extra in _EXTRAS else len(_EXTRAS)


def _module(distribution: str) -> str:
    return _MODULES.get(distribution, distribution.replace("-", "_"))


def _processor(_: _Surroundings) -> Iterator[DoctorFinding]:
    features = integer_tower.int8_features()
    listed = "features unknown" if features is None else ", ".join(features) or "no 8-bit features"
    advice = ""
    if features is not None and "AVX2" in features and "VNNI" not in features:
        advice = "8-bit ONNX graphs of your own can overflow here: export them in float32 (the embedded default is not affected)."
    yield DoctorFinding(
        area="processor", state="ok", found=f"{machine.processor_name()}; {listed}", fix=advice
    )
    try:
        used = choose_provider()
        yield DoctorFinding(
            area="onnxruntime providers",
            state="ok",
            found=f"{', '.join(available_providers())}; computing by {used.name}",
            fix=" ".join(fallback_notes()),
        )
    except (ImportError, OSError) as error:
        yield DoctorFinding(
            area="onnxruntime providers",
            state="broken",
            found=str(error),
            fix="pip install --force-reinstall onnxruntime",
        )


def _engines(given: _Surroundings) -> Iterator[DoctorFinding]:
    here = f"local, processes ({len(os.sched_getaffinity(0))} cores)"
    if machine.installed_version("ray") is None:
        fix = "For clusters: pip install 'weakspot[ray]'."
        yield DoctorFinding(
            area="engines",
            state="ok",
            found=f"{here}; ray is not installed",
            fix=fix,
            is_optional=True,
        )
        return
    address = os.environ.get("RAY_ADDRESS", "")
    if ":" not in address:
        found = f"{here}, ray (a cluster on this machine is started when needed)"
        yield DoctorFinding(area="engines", state="ok", found=found, is_optional=True)
    elif not given.ask_network:
        yield DoctorFinding(
            area="engines",
            state="ok",
            found=f"{here}, ray (cluster at {address}, not asked)",
            is_optional=True,
        )
    elif machine.answers(address, timeout_seconds=given.timeout_seconds):
        yield DoctorFinding(
            area="engines",
            state="ok",
            found=f"{here}, ray (cluster at {address} answers)",
            is_optional=True,
        )
    else:
        found, fix = (
            f"{here}; no ray cluster answers at {address}",
            "Start it with `ray start --head`, or correct RAY_ADDRESS.",
        )
        yield DoctorFinding(area="engines", state="missing", found=found, fix=fix, is_optional=True)


def _memory_and_disk(given: _Surroundings) -> Iterator[DoctorFinding]:
    memory = machine.free_memory_bytes()
    if memory is not None:
        short = memory < NEEDED_MEMORY_BYTES
        fix = (
            f"Free some: the embedded default wants {_size(NEEDED_MEMORY_BYTES)}." if short else ""
        )
        yield DoctorFinding(
            area="memory", state="broken" if short else "ok", found=f"{_size(memory)} free", fix=fix
        )
    existing = next(folder for folder in (given.cache, *given.cache.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    writable = os.access(existing, os.W_OK)
    found = f"{given.cache}, {_size(free)} free" + ("" if writable else ", not writable")
    well = writable and free >= NEEDED_DISK_BYTES
    fix = (
        ""
        if well
        else f"Set {CACHE_VARIABLE} to a writable folder with {_size(NEEDED_DISK_BYTES)} free."
    )
    yield DoctorFinding(area="cache folder", state="ok" if well else "broken", found=found, fix=fix)


def _weights(given: _Surroundings) -> Iterator[DoctorFinding]:
    named = {
        "embedded default": FILES,
        "embedded segmenter": (PATCH_MODEL,),
        "demo photographs": (GROCERIES,),
        **{f"witness {kind}": files for kind, files in WITNESS_FILES.items()},
    }
    made = {
        "embedded default": (float_tower_path(given.cache), integer_tower_path(given.cache)),
        "embedded segmenter": (token_graph_path(given.cache),),
    }
    for label, files in named.items():
        absent = [file for file in files if not is_cached(file, cache_dir=given.cache)]
        if absent:
            by_wheel = {file.requirement: file.wheel_bytes for file in absent}
            total = _size(sum(by_wheel.values()))
            found = f"not in the cache: {', '.join(file.file_name for file in absent)}"
            wheels = ", ".join(by_wheel)
            fix = (
                f"Nothing: {total} are downloaded on first use; without a network, "
                f"set {WHEELS_VARIABLE} to a folder with {wheels}."
            )
            yield DoctorFinding(area=label, state="missing", found=found, fix=fix, is_optional=True)
        else:
            ready = label not in made or any(path.is_file() for path in made[label])
            yield DoctorFinding(
                area=label,
                state="ok",
                found="cached" if ready else "cached, made ready on first use",
            )


def _package_index(given: _Surroundings) -> Iterator[DoctorFinding]:
    command = pip_command()
    if command is None:
        fix = f"Run `python -m ensurepip` (or `uv pip install pip`), or set {WHEELS_VARIABLE} to a folder of wheels."
        yield DoctorFinding(
            area="package index",
            state="missing",
            found="no pip in this environment",
            fix=fix,
            is_optional=True,
        )
        return
    if not given.ask_network:
        yield DoctorFinding(area="package index", state="ok", found="not asked", is_optional=True)
        return
    problem = index_answers(SENTENCE_MODEL.package, timeout_seconds=given.timeout_seconds)
    if problem is None:
        yield DoctorFinding(
            area="package index", state="ok", found="reachable through pip", is_optional=True
        )
    else:
        fix = f"Check the network and `pip config list`, or set {WHEELS_VARIABLE} to a folder of wheels."
        yield DoctorFinding(
            area="package index", state="missing", found=problem, fix=fix, is_optional=True
        )


def _model_hub(given: _Surroundings) -> Iterator[DoctorFinding]:
    cached = [name for name in HUB_MODELS if source.is_in_hub_cache(name)]
    listed = f"cached: {', '.join(cached)}" if cached else "no known model cached"
    switched_off = source.hub_is_off()
    if switched_off is not None:
        yield DoctorFinding(
            area="model hub", state="ok", found=f"{listed}; {switched_off} is set", is_optional=True
        )
    elif not given.ask_network:
        yield DoctorFinding(
            area="model hub", state="ok", found=f"{listed}; not asked", is_optional=True
        )
    elif source.hub_answers(timeout_seconds=given.timeout_seconds):
        yield DoctorFinding(
            area="model hub", state="ok", found=f"{listed}; reachable", is_optional=True
        )
    else:
        fix = "Nothing: the embedded default is used instead. For hub models, check the network and install 'weakspot[hub]'."
        yield DoctorFinding(
            area="model hub",
            state="missing",
            found=f"{listed}; not reachable",
            fix=fix,
            is_optional=True,
        )


def _project(given: _Surroundings) -> Iterator[DoctorFinding]:
    home = next(
        (
            folder
            for folder in (given.folder, *given.folder.parents)
            if (folder / SETTINGS_FILE).is_file()
        ),
        None,
    )
    if home is None:
        yield DoctorFinding(
            area="project",
            state="missing",
            found=f"no {SETTINGS_FILE} in {given.folder}",
            fix="Run `weakspot init`.",
            is_optional=True,
        )
        return
    try:
        load_settings(home)
    except WeakspotError as error:
        yield DoctorFinding(
            area="project",
            state="broken",
            found=error.what,
            fix=error.fix or f"Correct {SETTINGS_FILE}.",
        )
        return
    yield DoctorFinding(area="project", state="ok", found=f"{home / SETTINGS_FILE} is in order")


def _size(n_bytes: int) -> str:
    millions = n_bytes / 1e6
    return f"{millions:.0f} MB" if millions < _THOUSAND else f"{millions / _THOUSAND:.1f} GB"


def examine_project(folder: Path) -> tuple[tuple[PreflightCheck, ...], tuple[DoctorFinding, ...]]:
    """Return what the pre-flight says of a project, and why it could not be made if so."""
    try:
        project = Project.open(folder)
        return project.preflight(), _images_of(project)
    except WeakspotError as error:
        found = f"{error.what} ({error.where})" if error.where else error.what
        fix = error.fix or "Correct weakspot.toml."
        return (), (DoctorFinding(area="pre-flight", state="broken", found=found, fix=fix),)


def _images_of(project: Project) -> tuple[DoctorFinding, ...]:
    tables = project.store.current_tables()
    missing = None if tables is None else find_missing_images(tables.dataset())
    if missing is None:
        return ()
    found = f"{missing.sentence} The first is {missing.example}."
    return (DoctorFinding(area="images", state="missing", found=found, fix=FIX),)


def is_in_order(findings: Sequence[DoctorFinding], checks: Sequence[PreflightCheck] = ()) -> bool:
    return not _needed(findings) and not _problems(checks)


def verdict_sentence(
    findings: Sequence[DoctorFinding], checks: Sequence[PreflightCheck] = ()
) -> str:
    """Return whether all is well, and what is not."""
    needed = [f"{finding.area} is {finding.state}" for finding in _needed(findings)]
    wrong = [check.short or check.check for check in _problems(checks)]
    if needed or wrong:
        return f"Not in order: {'; '.join([*wrong, *needed])}."
    n_notices = sum(check.state is CheckState.NOTICE for check in checks)
    things = "thing is" if n_notices == 1 else "things are"
    notices = f", {n_notices} {things} worth knowing" if n_notices else ""
    what = "this machine and the project are ready" if checks else "this machine is ready"
    return f"In order: {what}{notices}."


def _needed(findings: Sequence[DoctorFinding]) -> list[DoctorFinding]:
    return [finding for finding in findings if finding.state != "ok" and not finding.is_optional]


def _problems(checks: Sequence[PreflightCheck]) -> list[PreflightCheck]:
    return [check for check in checks if check.state is CheckState.PROBLEM]
