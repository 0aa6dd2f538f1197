"""What the command `pathgauge` runs first, before it loads the modules of the commands.

Loading them takes a quarter of a second, on a busy machine more. A container that is stopped
meanwhile would ignore the signal: see `early_signals`.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that `sys.argv` names."""
    if sys.argv[1:2] == ["serve"]:
        from pathgauge.collector.service import early_signals

        early_signals.hold()

    from pathgauge.collector.cli import app

    app()


if __name__ == "__main__":
    main()
