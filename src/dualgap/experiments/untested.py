"""Claims of the papers that no experiment tests, each with the reason."""

from __future__ import annotations

from .report import Claim

UNTESTED: dict[str, tuple[tuple[str, str], ...]] = {
    "panagiotakopoulos": (
        (
            "Proposition 3 (13): how many of l repeated presentations of a row are margin errors",
            "a formula; the tests of the solver check it (tests/solvers/primal/test_margin_sgd.py)",
        ),
        (
            "T_k / T tends to 1 or 0 for rows that stay margin errors, or never are again",
            "a limit; shares by row are not recorded here, a test of the solver looks at them (the same "
            "file)",
        ),
    ),
    "rupnik": (
        ("Figure 1: separating hyperplanes", "a drawing of the idea, without data"),
        (
            "200 iterations of Pegasos take 9.2 seconds where SVM-light takes four hours",
            "SVM-light is not run; seconds of 200 iterations stand in rupnik-convergence",
        ),
        ("lam = 0.0001 is optimal for Reuters", "Reuters RCV1 is not at hand; its lam is taken as it is"),
    ),
    "ouillade": (
        (
            "a dual accuracy of order lam eps^2 is needed for a primal accuracy of eps",
            "the accuracy of dual points is not recorded beside that of primal ones",
        ),
        (
            "it should be preferable to use the projection",
            "advice; the two reasons given for it are tested in ouillade-figure-6 and ouillade-table-2",
        ),
        (
            "Table 1: the sizes of the three sets (1,000 x 10, 184 x 4,654, 245,057 x 3)",
            "no result; ours have the same shapes, and the genomic rows are generated",
        ),
    ),
    "zhang": (
        (
            "Theorem 5.1: a bound of the losses suffered in the course of SGD, and as its consequence a "
            "bound "
            "of mistakes like the perceptron's",
            "losses in the course of a run are not recorded",
        ),
        (
            "optimal convergence can be attained with a constant learning rate: T = O(1/eps^2)",
            "no other schedule of rates is run beside it",
        ),
        (
            "early stopping is easier to implement, more efficient and more robust than a regulariser",
            "ease is not measured; accuracies alone are compared, in zhang-figure-1",
        ),
        (
            "where data are nearly or fully separable, SGD with a suitable loss behaves like the perceptron",
            "no separable set is run",
        ),
    ),
    "vishwanathan": (
        (
            "selective and plain block minimisation are wasteful: they read everything once to compress it, "
            "and pause while a block is loaded",
            "the time to make the store is not counted for any method",
        ),
        (
            "the three cases of an implicit update for the hinge loss",
            "formulas; the tests of the solver check them (tests/solvers/primal/test_implicit.py)",
        ),
        (
            "dual cached loops train while a reader streams",
            "runs are in lockstep, reading and training in turns, so that passes are the same each time",
        ),
    ),
}


def untested(paper: str) -> list[Claim]:
    """The claims of a paper that were left out."""
    return [Claim(text, "not tested here", why) for text, why in UNTESTED[paper]]
