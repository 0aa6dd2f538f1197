"""Where the files stand that tests read, whatever folder a test is in."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DEPLOY = ROOT / "deploy"
GOLDEN = ROOT / "tests" / "golden"
CAPTURES = GOLDEN / "captures"
REFERENCE_FILES = GOLDEN / "references"
