"""Paragraphs that the docstrings of estimators share: a line ``{name}`` in one stands for that of a parameter
or attribute.
"""

from __future__ import annotations

import re
from typing import TypeVar

C = TypeVar("C", bound=type)

SHARED = {
    "C": """C : float, default=1.0
    How much the losses count against the regularisation. It multiplies their sum, so repeating all rows twice
    is doubling C.""",
    "alpha": """alpha : float, default=None
    The other way to say it: ``C = 1/(alpha N)``, N the sum of the weights. The objective is then ``alpha/2
    |w|^2 + 1/N sum_i c_i phi_i``, and so are those of the certificates (form "mean"). Give C or alpha.""",
    "tol": """tol : float, default=1e-3
    The relative gap at which to stop: (primal - dual) / dual, rounding errors included. It bounds the
    suboptimality of the objective, unlike the tolerances of other solvers, which bound a step or a
    gradient.""",
    "fit_intercept": """fit_intercept : bool, default=True
    Whether there is an intercept, which is not regularised.""",
    "bias": """fit_intercept : bool, default=True
    Whether there is an intercept.
bias : {"exact", "augmented"}, default="exact"
    ``"exact"``: the intercept is not regularised, as in ``SVC`` and in the textbooks. ``"augmented"``: it is
    the weight of a constant feature and regularised like the others, as in LIBLINEAR.
intercept_scaling : float, default=1.0
    The value of that constant feature (``bias="augmented"`` only). The larger it is, the less the intercept
    is regularised, and the more epochs training may take.""",
    "class_weight": """class_weight : dict or "balanced", default=None
    Multiplies the weights of the rows of each class, in the classifiers of all classes. ``"balanced"`` gives
    all classes the same total weight. (LIBLINEAR, with more than two classes, weights the rows of one class
    only in that class's own classifier.)""",
    "solver": """solver : str, default="auto"
    A solver that ``dualgap solvers`` lists, or the one that suits the loss and the data.
solver_options : dict, default=None
    Options of that solver, such as ``{"shrinking": False}``.""",
    "max_iter": """max_iter : float, default=1000
    The largest number of epochs for each model; an epoch is one visit per row of positive weight. Solvers may
    pass it by one step.
time_limit : float, default=None
    Seconds after which training of a model ends with the best so far, and a warning that states its gap.""",
    "early_stopping": """early_stopping : bool, default=False
    Whether to hold out a part of the rows and stop when the loss on them has not fallen for
    ``n_iter_no_change`` epochs. The model that is best on them is kept; ``history_`` has the curve
    (``record["measures"]["validation"]``). ``fit(X, y, X_val=..., y_val=...)`` does the same with rows of
    your choice.
validation_fraction : float, default=0.1
    The part of the rows that ``early_stopping`` holds out.
n_iter_no_change : int, default=5
    The patience of early stopping.""",
    "warm_start": """warm_start : bool, default=False
    Whether ``fit`` begins at the last model: at its weights, and the duals of the rows that are the same, in
    whatever order, beside added ones. It begins afresh where classes or columns are others.
keep_dual : bool, default=False
    Whether to keep the dual point (``dual_``, ``support_``, ``n_support_``, ``dual_coef_``), one number a
    row: a pickled estimator then grows with the training rows. ``warm_start`` keeps it as well.""",
    "random_state": """random_state : int, RandomState instance or None, default=None
    Where the random order of the rows comes from. An int makes the result reproducible bit for bit.
n_jobs : int, default=None
    The number of threads: None is 1 (unless a ``joblib.parallel_config`` says otherwise) and -1 all cores.
    They share the models among them, or, of one model, the passes over all rows. Results may depend on the
    number of threads, within what the certificate states.""",
    "output": """output : {"best", "last"}, default="best"
    The model to keep: the best that training has seen, or the solver's own at the end, as the algorithm of
    its paper returns it.""",
    "callbacks": """callbacks : list, default=None
    Functions of ``(record, run)``, called with every record of every run; something true that one returns
    ends that run. See ``dualgap.fit``.
verbose : int, default=0
    Whether to show progress, where models are trained one at a time.""",
    "coef_classes": """coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    The weights, in float64 whatever the type of X; the certificate is about these.
intercept_ : ndarray of shape (1,) or (n_classes,)
    The intercepts, 0 without ``fit_intercept``.
classes_ : ndarray of shape (n_classes,)
    The labels that have rows of positive weight: a row of weight 0 is no row.""",
    "coef_targets": """coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    The weights, in float64 whatever the type of X; the certificate is about these.
intercept_ : float or ndarray of shape (n_targets,)
    The intercept, 0 without ``fit_intercept``.""",
    "proofs": """certificate_ : list of Certificate
    The proof of each model: ``primal``, ``dual``, ``gap``, ``relative_gap``, ``rounding``, in the objective
    above. One for each row of ``coef_``, or one for all of them where they were trained at once.
objective_, dual_objective_, gap_ : ndarray of shape (n_certificates,)
    The same numbers as arrays: the objective of each model, a bound that no model can beat, and the
    difference with all rounding errors.
history_ : list of lists of dict
    The certified records of each run (``Record.as_dict``): epochs, visits, seconds, the best primal and dual
    value so far, those of the solver's own point...""",
    "n_iter_": """n_iter_ : int
    Epochs, of the model that took the most, ``max_iter`` at most.""",
    "dual_": """dual_ : ndarray of shape (n_models, n_samples)
    With ``keep_dual``: the dual point, as in ``Outcome.dual``: one signed number beta_i a row.
    ``w(beta) = C sum_i c_i beta_i x_i`` is ``coef_``, up to rounding where both were found at the same moment
    of the run, and never further away than ``sqrt(2 gap)``. What ``SVC`` calls ``dual_coef_`` is ``C c_i
    beta_i``. The lower bound is ``-C sum_i c_i phi*(-beta_i) - 1/2 |w(beta)|^2``; an intercept that is not
    regularised needs ``sum_i c_i beta_i = 0``, a constant feature rho (``intercept_scaling``) counts as a
    feature.
support_, n_support_, dual_coef_ : ndarray
    With ``keep_dual``: the rows whose dual is not 0, how many there are, and ``C c_i beta_i`` of these.""",
    "sgd_penalty": """penalty : {"l2"}, default="l2"
    The only one there is, accepted for scikit-learn's sake.
l1_ratio : float or None, default=0.15
    Of ``penalty="elasticnet"`` in scikit-learn; accepted, and without effect.
alpha : float, default=0.0001
    The strength of the penalty.
C : float, default=None
    The other way to say it: ``C = 1/(alpha N)``; the certificates are then about ``1/2 |w|^2 + C sum_i
    c_i phi_i``. ``partial_fit`` needs alpha. Give C or alpha.""",
    "sgd_steps": """tol : float or None, default=1e-2
    The relative gap at which to stop: (primal - dual) / dual, rounding errors included. None stops at
    ``max_iter`` only. Stochastic gradients come close soon and close in slowly: for a small gap take
    ``LinearSVC``, ``LogisticRegression`` or ``LinearClassifier``, which solve the same problems.
shuffle : bool, default=True
    Whether rows are presented in a fresh random order in every epoch, or as they come.
epsilon : float, default=0.1
    The parameter of the losses ``huber``, ``epsilon_insensitive`` and ``squared_epsilon_insensitive``.
learning_rate : {"optimal", "constant", "invscaling"}, default="optimal"
    The step in visit t: ``eta0/(1 + alpha eta0 t)`` (Bottou), ``eta0``, or ``eta0/t^power_t``.
eta0 : float, default=0.0
    The first step; 0: the best one on 1,000 rows.
power_t : {0.5, 1.0}, default=0.5
    The exponent of ``learning_rate="invscaling"``.
average : bool, default=False
    Whether the model is the mean of the iterates after the first epoch.
solver : str, default="auto"
    What ``learning_rate`` and ``average`` say (``svmsgd``, ``asgd`` or ``sgd``), or one of the solvers
    that ``dualgap solvers`` lists, to which these parameters do not apply.
solver_options : dict, default=None
    Options of that solver.""",
    "names": """n_features_in_ : int
    The number of columns seen by ``fit``.
feature_names_in_ : ndarray of shape (n_features,)
    Their names, where X has names that are all strings.""",
}

_LINE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)  # Python 3.13 takes the indentation away


def documented(cls: C) -> C:
    """Fill the shared paragraphs into the docstring of a class."""
    if cls.__doc__ is not None:  # python -OO strips docstrings
        cls.__doc__ = _LINE.sub(
            lambda found: "\n".join(found[1] + line for line in SHARED[found[2]].splitlines()), cls.__doc__
        )
    return cls
