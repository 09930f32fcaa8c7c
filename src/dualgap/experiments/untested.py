"""Claims and figures of the papers that no experiment tests, each with the reason."""

from __future__ import annotations

from .report import Claim

UNTESTED: dict[str, tuple[tuple[str, str], ...]] = {
    "rupnik": (
        ("Figure 1: separating hyperplanes", "a drawing of the idea, without data or a result"),
        (
            "the solution stays the same if all rows but the support vectors are removed (section 2.2)",
            "a consequence of the optimality conditions; the paper has no experiment on it",
        ),
        (
            "a projection brings a point outside the ball only closer to the optimum (section 3.2.2)",
            "geometry: the ball is convex and contains the optimum. What the projection does to curves "
            "stands in "
            "ouillade-figure-6",
        ),
        (
            "the aggressive learning rate 1/(lam t) is a key to success (section 3.2.3)",
            "no slower rate was run on these documents, and the paper shows none",
        ),
        (
            "a small k is slow because soon all but 5 to 10% of the training rows are right, so that t "
            "grows while w "
            "stays (section 4.5)",
            "how many rows are right was not recorded; the remedy that the paper draws from it, t held, is "
            "tested in "
            "rupnik-figure-4",
        ),
    ),
    "ouillade": (
        (
            "ASDCA allows for parallelisation (section 2.5)",
            "the paper did not try it, and our runs have one thread",
        ),
        (
            "on skin larger batches would converge better, at the cost of a higher runtime (section 4.2)",
            "on skin batches of 2 alone were run, as in the paper; sizes on simulated rows: "
            "ouillade-batch-sizes",
        ),
    ),
    "zhang": (
        (
            "a preconditioner S can accelerate the convergence of SGD (section 2)",
            "S is the identity in all runs here, and in the paper's",
        ),
        (
            "inequalities (5) and (6) on one step",
            "steps of the proofs; what follows from them, Theorems 5.1 to 5.3, is tested",
        ),
        ("bound (7)", "Theorem 5.2 where T goes to infinity; that is tested at finite T"),
    ),
    "vishwanathan": (
        (
            "Contrast with Implicit Updates: the closed form of a coordinate step beside that of an "
            "implicit update",
            "two formulas side by side, of which the lecture says no more; the second is tested in "
            "vishwanathan-implicit-updates",
        ),
        ("What are Informative Samples?", "a figure without a word in the text"),
        (
            "Hardware 101: disks are slower than processors by up to 100, random access to them by 10 more",
            "facts about machines of 2015; the disk of vishwanathan-dual-loops is slowed down on purpose",
        ),
    ),
}


def untested(paper: str) -> list[Claim]:
    """The claims of a paper that were left out."""
    return [Claim(text, "not tested here", why) for text, why in UNTESTED.get(paper, ())]
