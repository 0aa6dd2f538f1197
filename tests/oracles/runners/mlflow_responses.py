"""MLflow: patterns and lengths of responses. Its telemetry is switched off."""

from __future__ import annotations

import os

from .lines import Case, Results, answer

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

from mlflow.genai.scorers import RegexMatch, ResponseLength


def results(case: Case) -> Results:
    """1 where MLflow says yes."""
    scorers = {
        match_type: RegexMatch(
            pattern=case["pattern"],
            match_type=match_type,
            case_insensitive=case["ignore_case"],
        )
        for match_type in ("search", "fullmatch")
    }
    scorers |= {
        unit: ResponseLength(min_length=low, max_length=high, unit=unit)
        for unit, (low, high) in case["limits"].items()
    }
    return {
        name: float(scorer(outputs=case["response"] or "-").value == "yes")
        for name, scorer in scorers.items()
    }


if __name__ == "__main__":
    answer(("mlflow-skinny",), results)
