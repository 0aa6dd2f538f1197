"""Applies the patches of `patched.py` to a scorer process. Python imports this module at its start,
because `patched.py` puts this folder on the path.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

if "pathgauge.collector.service.workers.process" in sys.orig_argv:
    sys.path.append(str(Path(__file__).parents[1]))
    try:
        from importlib import import_module

        import_module("patched").apply(os.environ["FAULTS_PATCHES"])
    except BaseException:  # else Python would go on without the patches
        traceback.print_exc()
        os._exit(70)
