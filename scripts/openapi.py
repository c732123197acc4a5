"""Write the OpenAPI document the dashboard's types are made from: .venv/bin/python scripts/openapi.py"""

from __future__ import annotations

from pathlib import Path

from holdfast.server.app import rendered

TARGET = Path(__file__).parents[1] / "dashboard" / "openapi.json"

if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(rendered(), encoding="utf-8")
    print(TARGET)
