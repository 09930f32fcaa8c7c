"""The tables and figures of five papers on SVMs, each redone by one function.

An experiment is a module with a function ``run(lab) -> Report``; its first line says what it redoes. Papers
are packages by their first authors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import NamedTuple

from ..runtime.errors import InputError, nearest
from .lab import Lab
from .report import Report

PAPERS = {
    "panagiotakopoulos": "Panagiotakopoulos and Tsampouka (2013), The stochastic gradient descent for the "
    "primal L1-SVM optimization revisited",
    "rupnik": "Rupnik (2008), Stochastic subgradient approach for solving linear support vector machines: an "
    "overview",
    "ouillade": "Ouillade and Vengathesa Sarma (2017), Distributed and stochastic optimisation for machine "
    "learning: SDCA and Pegasos",
    "zhang": "Zhang (2004), Solving large scale linear prediction problems using stochastic gradient descent "
    "algorithms",
    "vishwanathan": "Vishwanathan (2015), Optimization for machine learning: support vector machine training",
}

# What each redoes, in the order of the papers; the name is that of its module.
TITLES: dict[str, str] = {
    "panagiotakopoulos-table-1": "Table 1: epochs of SGD-s to a relative accuracy of 1e-5",
    "panagiotakopoulos-tables-2-4-6": "Tables 2, 4 and 6: SGD algorithms to 1% of the optimum",
    "panagiotakopoulos-tables-3-5-7": "Tables 3, 5 and 7: linear SVMs to 1% of the optimum",
    "panagiotakopoulos-table-8": "Table 8: single precision",
    "panagiotakopoulos-orderings": "Tables 2 to 7 together: ratios of seconds between solvers",
    "panagiotakopoulos-propositions": "Propositions 1 to 3: norms, lower bounds, multiple updates",
    "rupnik-figure-2": "Figure 2: random starting points",
    "rupnik-convergence": "Section 4.3: iterations to 0.3% and 0.1%",
    "rupnik-figure-3": "Figure 3: the error on held-out documents by iteration",
    "rupnik-figure-4": "Figure 4: batch size against iterations",
    "ouillade-figures-1-to-3": "Figures 1 to 3: four algorithms on simulated, genomic and skin data",
    "ouillade-figures-4-and-5": "Figures 4 and 5: orders of SDCA",
    "ouillade-table-2": "Table 2 and Figure 7: accuracies and parameters, with and without averaging",
    "ouillade-figure-6": "Figure 6: projection in Pegasos",
    "ouillade-figures-8-to-11": "Figures 8 to 11: the influence of lam",
    "ouillade-batch-sizes": "Batch sizes, which the paper leaves open",
    "ouillade-rates": "Rates of section 2.3, measured",
    "zhang-figure-1": "Figure 1: early stopping, averaging and regularisation of least squares",
    "zhang-figure-2": "Figure 2: the perceptron and SGD with the hinge loss",
    "zhang-averaging": "Sections 5.2 and 5.3: averaging, half the time, random stopping",
    "zhang-theorems": "Theorems 5.2, 5.3 and 6.1: losses and distances beside their bounds",
    "zhang-online": "Theorem 5.1: losses and mistakes on the way; separable data; constant rates",
    "vishwanathan-eviction": "Does active eviction work?",
    "vishwanathan-block-minimisation": "Comparison with block minimisation",
    "vishwanathan-dual-loops": "Dual cached loops: a reader and a trainer at once",
    "vishwanathan-expanded-features": "Expanding features",
    "vishwanathan-implicit-updates": "Implicit and explicit updates",
    "vishwanathan-bias": "Bringing in the bias",
}


class Experiment(NamedTuple):
    """One table or figure of a paper."""

    name: str  # "zhang-figure-1"
    paper: str
    title: str

    @property
    def run(self) -> Callable[[Lab], Report]:
        """The function that redoes it; its module is imported when it is asked for."""
        module = self.name.removeprefix(f"{self.paper}-").replace("-", "_")
        found: Callable[[Lab], Report] = import_module(f".{self.paper}.{module}", __package__).run
        return found


EXPERIMENTS = {name: Experiment(name, name.partition("-")[0], title) for name, title in TITLES.items()}


def chosen(names: Iterable[str]) -> list[Experiment]:
    """Experiments by name, or all those of a paper; all where nothing is named."""
    wanted = list(names) or list(EXPERIMENTS)
    found: dict[str, Experiment] = {}
    for name in wanted:
        matching = {key: item for key, item in EXPERIMENTS.items() if name in (key, item.paper)}
        if not matching:
            raise InputError(f"unknown experiment {name!r}; {nearest(name, [*PAPERS, *EXPERIMENTS])}")
        found |= matching
    return list(found.values())
