"""Documents cannot go stale: what exists must be documented, generated pages must be current."""

import importlib.util
import inspect
import json
import re
from pathlib import Path

import pytest

from weakspot.core import errors, roles
from weakspot.core.registry import part_class, registered
from weakspot.core.rules import ColumnRule
from weakspot.core.run import RunRecord
from weakspot.core.slices import DataUse, FailureSlice

ROOT = Path(__file__).parent.parent


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _reference_pages():
    spec = importlib.util.spec_from_file_location(
        "make_reference", ROOT / "tools/make_reference.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PAGES


@pytest.mark.parametrize("name", ["cli.md", "settings.md", "methods.md", "python.md", "json.md"])
def test_reference__generated_pages_are_current(name):
    assert _text(f"docs/reference/{name}") == _reference_pages()[name](), (
        "run tools/make_reference.py"
    )


@pytest.mark.parametrize("role", ["discoverers", "describers", "verifiers", "repairers"])
def test_methods__say_what_they_do_and_show_it_in_a_runnable_example(role):
    docs = {name: part_class(role, name).__doc__ or "" for name in registered(role)}
    assert [name for name, doc in docs.items() if "\n    >>> " not in doc] == []


def test_plug_ins_page__names_every_role():
    page = _text("docs/guide/plug-ins.md")
    protocols = [
        name
        for name, value in vars(roles).items()
        if inspect.isclass(value) and getattr(value, "_is_protocol", False)
    ]
    protocols = [name for name in protocols if name != "Protocol"]
    assert len(protocols) == 23
    assert [name for name in protocols if name not in page] == []


def test_errors__tree_in_the_docstring_is_complete():
    names = [
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.WeakspotError)
    ]
    assert [name for name in names if name not in (errors.__doc__ or "")] == []


def test_architecture__names_every_folder():
    page = _text("ARCHITECTURE.md")
    folders = [
        path.name for path in (ROOT / "src/weakspot").iterdir() if (path / "__init__.py").is_file()
    ]
    assert [name for name in folders if f"`{name}`" not in page] == []


def test_third_party__names_every_dependency():
    listed = _text("THIRD_PARTY.md").lower()
    pyproject = _text("pyproject.toml")
    names = set(
        re.findall(
            r'^  "([A-Za-z0-9_.-]+?)(?:\[|>|=|")',
            pyproject.split("[project.optional-dependencies]")[0],
            re.M,
        )
    )
    extras = pyproject.split("[project.optional-dependencies]")[1].split("[project.scripts]")[0]
    names |= {
        name
        for name in re.findall(r'"([A-Za-z0-9_.-]+?)(?:\[|>|=|")', extras)
        if name != "weakspot"
    }
    wanted = {
        name
        for name in names
        if not name.startswith(("Development", "Intended", "Programming", "Topic", "Typing"))
    }
    assert len(wanted) > 15
    assert sorted(name for name in wanted if name.lower() not in listed) == []


def test_readme__links_lead_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", _text("README.md"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_readme__is_short_and_has_what_a_stranger_needs():
    text = _text("README.md")
    lines = text.splitlines()
    assert len(lines) < 120
    assert [line for line in lines if len(line) > 100] == []
    assert "weakspot.find(" in text
    assert ".venv/bin/weakspot demo\n" in text
    assert "\nsh scripts/test\n" in text


def test_schemas__are_current_and_fit_what_is_written():
    import jsonschema

    spec = importlib.util.spec_from_file_location(
        "json_reference", ROOT / "tools/json_reference.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kept = {path.name: path.read_text(encoding="utf-8") for path in module.FOLDER.glob("*.json")}
    assert kept == module.schemas(), "run tools/make_reference.py"
    slice_ = FailureSlice(
        class_name="apple",
        rule=ColumnRule(column="colour", values=("green",)),  # fields that only its kind has
        method="hand",
        found_on=DataUse(name="given", n_samples=0, digest="given"),
    )
    run = RunRecord(run_id="1", command="run", started="2026-01-01", seed=0, slices=(slice_,))
    jsonschema.validate(run.model_dump(mode="json"), json.loads(kept["run.json"]))


def test_changelog__newest_section_has_sentences():
    section = _text("CHANGELOG.md").split("\n## ")[1]
    entries = [line for line in section.splitlines() if line.startswith("- ")]
    assert entries
    assert [entry for entry in entries if not entry.endswith(".")] == []
