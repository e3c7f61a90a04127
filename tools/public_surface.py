"""The public names of weakspot: a page that shows each with its example, and a list of all signatures that a test compares.

`docs/reference/python.md` is made by `tools/make_reference.py`; `docs/reference/surface.txt` by `python tools/public_surface.py`, on
purpose only: a line that goes or changes there is a promise that changes.
"""

import enum
import inspect
import json
import re
from pathlib import Path

import weakspot

ROOT = Path(__file__).parent.parent
LIST = ROOT / "docs" / "reference" / "surface.txt"
EXAMPLES = ROOT / "examples" / "03_every_public_name.py"
GROUPS = {
    "Start here": ("find", "Findings", "FoundSlice"),
    "Projects": ("Project", "Settings", "open_source", "ArraySource", "FailureCriterion"),
    "What goes in": tuple(name for name in weakspot.__all__ if name.endswith("Request")),
    "What comes back": (
        *(name for name in weakspot.__all__ if name.endswith("Result")),
        "RunRecord",
    ),
    "Records": ("FailureSlice", "Evidence", "Verdict", "RepairPlan", "Head"),
    "Samples": ("SampleSet", "Dataset", "Split", "Task"),
    "Beside": ("WeakspotError", "__version__"),
}
HEAD = """# Python

Made by `tools/make_reference.py`; do not edit. `import weakspot`; the names below are public, and so are their methods and fields that do
not begin with an underscore and are listed here. Everything else may change without notice. The cells are one program,
`examples/03_every_public_name.py`, which tests run.

**One rule for names.** What you ask for ends with `Request`, what comes back with `Result`; what is stored with a run is a record.

**Deprecation.** A public name that goes or is renamed works for two more minor versions and warns (`DeprecationWarning`) with its new
name; the changelog names both. `docs/reference/surface.txt` lists every signature, and a test compares it. Deprecated now: none.
Stored files carry a format number: a project of a version that cannot be read is refused, with what to do.
"""
_HIDDEN = {
    "model_config",
    "model_fields",
    "model_computed_fields",
}


def cells() -> dict[str, str]:
    """Return the code of every cell of the examples by the name that it shows."""
    parts = re.split(r"^# %% ?(.*)\n", EXAMPLES.read_text(encoding="utf-8"), flags=re.M)
    return {name: code.strip() for name, code in zip(parts[1::2], parts[2::2], strict=True)}


def python_page() -> str:
    """Return the page on the public names."""
    shown = cells()
    lines = [HEAD, "```python", shown[""], "```", ""]
    for group, names in GROUPS.items():
        lines += [f"## {group}", ""]
        for name in names:
            lines += [*_section(name, shown[name]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _section(name: str, example: str) -> list[str]:
    thing = getattr(weakspot, name)
    lines = [f"### {name.strip('_') if name == '__version__' else name}", ""]
    if name == "__version__":
        return [*lines, "`weakspot.__version__`, as `weakspot --version` says.", *_fenced(example)]
    text = inspect.getdoc(thing) or ""
    lines += [" ".join(text.split("\n\n")[0].split())]
    if issubclass_of(thing, enum.Enum):
        lines += ["", "Values: " + ", ".join(f"`{one.value}`" for one in thing) + "."]
    meanings = _arguments(text)
    if meanings and (schema := _schema_of(name)):
        fields = ", ".join(f"`{one}`" for one in meanings)
        lines += ["", f"Fields, explained by `help` and [{schema}](schema/{schema}): {fields}."]
    elif meanings:
        lines += ["", "| argument | meaning |", "|---|---|"]
        lines += [f"| `{one}` | {_cell(meaning)} |" for one, meaning in meanings.items()]
    if methods := list(_methods(name)):
        lines += ["", "| gives or does | |", "|---|---|"]
        lines += [f"| `{called}` | {_cell(said)} |" for called, said in methods]
    return [*lines, *_fenced(example)]


def _schema_of(name: str) -> str:
    """Return the JSON Schema that says what the fields of a record mean; empty if none does."""
    for path in sorted((LIST.parent / "schema").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        if name in (schema["title"], *schema.get("$defs", {})):
            return path.name
    return ""


def _fenced(code: str) -> list[str]:
    return ["", "```python", code, "```"]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _arguments(text: str) -> dict[str, str]:
    if "\nArgs:\n" not in text:
        return {}
    section = text.split("\nArgs:\n", maxsplit=1)[1].split("\n\n", maxsplit=1)[0]
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", section, re.M)
    return {name: " ".join(meaning.split()) for name, meaning in entries}


def issubclass_of(thing: object, kind: type) -> bool:
    return inspect.isclass(thing) and issubclass(thing, kind)


def members(name: str) -> dict[str, object]:
    """Return the public methods and properties of a public class that are its own, or that tab completion of it shows."""
    thing = getattr(weakspot, name)
    if not inspect.isclass(thing) or issubclass(thing, enum.Enum):
        return {}
    shown = dir(thing.__new__(thing)) if name == "Project" else vars(thing)
    found = {one: inspect.getattr_static(thing, one, None) for one in shown if one not in _HIDDEN}
    return {
        one: value
        for one, value in found.items()
        if not one.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, classmethod) or _is_property(value))
    }


def _is_property(value: object) -> bool:
    return isinstance(value, property) or type(value).__name__ == "cached_property"


def _methods(name: str):
    for one, value in members(name).items():
        inner = getattr(value, "__func__", None) or getattr(value, "fget", None)
        inner = inner or getattr(value, "func", value)
        text = inspect.getdoc(inner) or ""
        names = "" if _is_property(value) else f"({', '.join(_parameters(inner))})"
        yield f"{one}{names}", " ".join(text.split("\n\n")[0].split())


def _parameters(function) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if one.name not in ("self", "cls")]


def surface() -> list[str]:
    """Return one line for every public name, argument list and member."""
    lines = []
    for name in weakspot.__all__:
        thing = getattr(weakspot, name)
        lines.append(f"{name}{_arguments_of(thing)}")
        if issubclass_of(thing, enum.Enum):
            lines += [f"{name}.{one.name}" for one in thing]
        lines += [f"{name}.{called}" for called, _ in _methods(name)]
    return sorted(lines)


def _arguments_of(thing: object) -> str:
    if not callable(thing) or issubclass_of(thing, enum.Enum):
        return ""
    return f"({', '.join(_parameters(thing))})"


if __name__ == "__main__":
    LIST.write_text("\n".join(surface()) + "\n", encoding="utf-8")
