"""SciPy: how likely a difference of means is by chance, by the t-tests of Student and of Welch."""

from __future__ import annotations

import warnings

from scipy.special import comb
from scipy.stats import ttest_ind

from .lines import Case, Results, answer


def results(case: Case) -> Results:
    """The one-sided p-values, and the larger of them, but none below what a permutation test could
    give.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of samples that vary little
        student, welch = (
            float(
                ttest_ind(
                    case["current"], case["baseline"], equal_var=equal, alternative="less"
                ).pvalue
            )
            for equal in (True, False)
        )
    current, baseline = len(case["current"]), len(case["baseline"])
    permutation = 1 / comb(current + baseline, current, exact=True)
    return {"Student": student, "Welch": welch, "larger p-value": max(student, welch, permutation)}


if __name__ == "__main__":
    answer(("scipy",), results)
