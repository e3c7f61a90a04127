"""Write the schema of the server's API to frontend/openapi.json, from which npm generates the types of the pages."""

import json
import sys
from pathlib import Path

SCHEMA = Path(__file__).parent.parent / "frontend" / "openapi.json"


def schema_text() -> str:
    """Return the schema; no project is opened for it."""
    from weakspot.web.application import create_app
    from weakspot.web.server_parts import ServerParts

    parts = ServerParts(workspace=None, state=None, jobs=None, owner_token="")  # type: ignore[arg-type]
    return json.dumps(create_app(parts).openapi(), indent=1, sort_keys=True, ensure_ascii=False)


def main() -> None:
    """Write the file."""
    SCHEMA.write_text(schema_text() + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
