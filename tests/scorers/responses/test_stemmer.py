"""The stemmer is loaded without nltk, which stays whole for everybody else."""

import subprocess
import sys

import pytest

WORDS = (
    "running dogs skies dying happily generalizations agreed plastered conflated hopping falling"
    " relational conditional vietnamization electricity adjustable irritant replacement probate"
    " controll innings proceed exceeding spied enjoyment news tying"
)
COMPARE = f"""
import sys
from pathgauge.scorers.responses.stemmer import load_stemmer
stems = load_stemmer()("{WORDS}")
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & {{"nltk", "numpy"}}))
from nltk.stem import PorterStemmer
print(stems == [PorterStemmer().stem(word) for word in "{WORDS}".split()])
"""
LATER_RELEASE = """
import sys
class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name == "nltk.stem.porter" and not hasattr(sys.modules["nltk"], "internals"):
            raise {error}
sys.meta_path.insert(0, Refusal())
from pathgauge.scorers.responses.stemmer import load_stemmer
print(load_stemmer()("running dogs"), "numpy" in sys.modules)
"""


def printed(program: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()


def test_stems_are_those_of_nltk_which_is_not_loaded_and_can_be_imported_later() -> None:
    assert printed(COMPARE) == ["", "True"]


def test_an_nltk_that_was_imported_before_is_used() -> None:
    program = "import nltk; from pathgauge.scorers.responses.stemmer import load_stemmer;"
    program += " print(load_stemmer()('running')); import sys; print(sys.modules['nltk'] is nltk)"
    assert printed(program) == ["['run']", "True"]


@pytest.mark.slow
@pytest.mark.parametrize("error", ["ImportError('whole package')", "AttributeError('name')"])
def test_a_release_of_nltk_that_needs_its_whole_package_is_loaded(error: str) -> None:
    assert printed(LATER_RELEASE.format(error=error)) == ["['run', 'dog'] True"]
