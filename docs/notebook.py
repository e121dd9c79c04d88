"""Runs the notebook of the tutorial, and keeps what its cells print: `python -m docs.notebook` (after `make dist`).

A test runs the same cells.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jupyter_client.manager import KernelManager

NOTEBOOK: Final = Path(__file__).resolve().parents[1] / "examples" / "tutorial" / "live.ipynb"
CELL_SECONDS: Final = 180


def run(cells: list[dict[str, Any]], folder: Path) -> None:
    """Run the cells of code one after the other with this working folder, and put into each what it has printed.

    Raises:
        RuntimeError: A cell has failed; the message is its traceback.
    """
    kernel = KernelManager(kernel_name="python3")
    kernel.start_kernel(cwd=str(folder))
    client = kernel.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=CELL_SECONDS)
        for number, cell in enumerate((each for each in cells if each["cell_type"] == "code"), 1):
            printed: list[str] = []

            def hear(message: Mapping[str, Any], printed: list[str] = printed) -> None:
                if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                    printed.append(message["content"]["text"])

            reply = client.execute_interactive(
                "".join(cell["source"]), timeout=CELL_SECONDS, output_hook=hear
            )
            if reply["content"]["status"] != "ok":
                raise RuntimeError("\n".join(reply["content"].get("traceback", ["the kernel has ended"])))
            text = "".join(printed).splitlines(keepends=True)
            cell["execution_count"] = number
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


def main() -> int:
    """Write the notebook with what its cells print now."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    run(notebook["cells"], NOTEBOOK.parent)
    NOTEBOOK.write_text(json.dumps(notebook, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
