"""Write the server's schema to docs/reference/openapi.json and the pages' client from it."""

import fcntl
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCHEMA = ROOT / "docs" / "reference" / "openapi.json"


def schema_text() -> str:
    """Return the schema as it is written; no project is opened for it."""
    from weakspot.web.application import create_app
    from weakspot.web.server_parts import ServerParts

    parts = ServerParts(workspace=None, state=None, jobs=None, owner_token="")  # type: ignore[arg-type]
    return json.dumps(create_app(parts).openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> None:
    """Write both files."""
    with (Path(tempfile.gettempdir()) / "weakspot-make-client").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        SCHEMA.write_text(schema_text(), encoding="utf-8")
        subprocess.run(["npm", "run", "--silent", "client"], cwd=ROOT / "frontend", check=True)


if __name__ == "__main__":
    sys.exit(main())
