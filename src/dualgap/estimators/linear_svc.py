"""``LinearSVC``: linear classification with a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from ..core.losses import Loss
from ..data.labels import Labels, signs
from ..models.scoring import labels_of
from ..runtime.arrays import Floats
from ._base import LinearModel
from ._input import class_factors, loss_for, rows_of, two_or_more, weights_of


class LinearSVC(ClassifierMixin, LinearModel):  # type: ignore[misc]
    """Linear classifier, by default a support vector machine, that says how good its solution is.

    Minimises ``1/2 |w|^2 + C sum_i c_i phi(y_i (<w, x_i> + b))`` until it is proven that the objective is at
    most ``tol`` (a fraction) above its minimum. The weight ``c_i`` of a row is its sample weight times its
    class weight. With more than two classes, one such classifier for each class against the rest.

    Parameters
    ----------
    C : float, default=1.0
        How much the losses count against the regularisation. It multiplies their sum, so repeating all rows
        twice is doubling C. ``inf``, for the hinge loss, is the hard margin: the smallest ``1/2 |w|^2`` of
        all models without a loss.
    loss : str or loss, default="hinge"
        ``"hinge"`` (the support vector machine), ``"squared-hinge"``, ``"smooth-hinge"``, ``"logistic"`` or
        ``"modified-huber"``, with parameters after a colon (``"smooth-hinge:gamma=0.5"``), or a loss of
        ``dualgap.core.losses``. An underscore will do for the hyphen. scikit-learn's own default is
        ``"squared_hinge"``.
    tol : float, default=1e-3
        The relative gap at which to stop: (primal - dual) / dual, rounding errors included. It bounds the
        suboptimality of the objective, unlike the tolerances of other solvers, which bound a step or a
        gradient.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    bias : {"exact", "augmented"}, default="exact"
        ``"exact"``: the intercept is not regularised, as in ``SVC`` and in the textbooks. ``"augmented"``: it
        is the weight of a constant feature and regularised like the others, as in scikit-learn's
        ``LinearSVC``.
    intercept_scaling : float, default=1.0
        The value of that constant feature (``bias="augmented"`` only). The larger it is, the less the
        intercept is regularised, and the more epochs training may take.
    class_weight : dict or "balanced", default=None
        Multiplies the weights of the rows of each class, in the classifiers of all classes. ``"balanced"``
        gives all classes the same total weight. (LIBLINEAR, with more than two classes, weights the rows of
        one class only in that class's own classifier.)
    solver : str, default="auto"
        A solver that ``dualgap solvers`` lists, or the one that suits the loss and the data.
    solver_options : dict, default=None
        Options of that solver, such as ``{"shrinking": False}``.
    max_iter : float, default=1000
        The largest number of epochs for each classifier; an epoch is one visit per row of positive weight
        (``decomposition`` and ``smo`` count the rows that they move). Solvers may pass it by one step.
    warm_start : bool, default=False
        Whether ``fit`` begins at the dual points of the last ``fit``. It begins afresh where these are not of
        the same shape, or not feasible for the new loss or labels.
    random_state : int, RandomState instance or None, default=None
        Where the random order of the rows comes from. An int makes the result reproducible bit for bit.
    n_jobs : int, default=None
        The number of threads: None is 1 (unless a ``joblib.parallel_config`` says otherwise) and -1 all
        cores. They share the classes among them, or, with two classes, the passes over all rows. Results may
        depend on the number of threads, within what the certificate states.
    output : {"best", "last"}, default="best"
        The model to keep: the best that training has seen, or the solver's own at the end, as the algorithm
        of its paper returns it.
    verbose : int, default=0
        Whether to show progress, on a terminal and where classes are trained one at a time.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The weights, in float64 whatever the type of X; the certificate is about these.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts, 0 without ``fit_intercept``.
    classes_ : ndarray of shape (n_classes,)
        The labels that have rows of positive weight: a row of weight 0 is no row.
    dual_ : ndarray of shape (1, n_samples) or (n_classes, n_samples)
        The dual point, as in ``Outcome.dual``: one signed number beta_i a row, between 0 and y_i (-1 or +1)
        for the hinge loss, 0 for rows that are no support vectors. ``w(beta) = C sum_i c_i beta_i x_i`` is
        ``coef_``, up to rounding where both were found at the same moment of the run, and never further away
        than ``sqrt(2 gap)``: each of the two is the best that the run has seen. What ``SVC`` calls
        ``dual_coef_`` is ``C c_i beta_i``. The lower bound is ``-C sum_i c_i phi*(-beta_i) - 1/2
        |w(beta)|^2``, for the hinge ``C sum_i c_i y_i beta_i - 1/2 |w(beta)|^2``; an intercept that is not
        regularised needs ``sum_i c_i beta_i = 0``, a constant feature rho (``intercept_scaling``) counts as a
        feature.
    certificate_ : list of Certificate, one for each row of ``coef_``
        The proof: ``primal``, ``dual``, ``gap``, ``relative_gap``, ``rounding``, in the objective above (form
        "J"). A list of one with two classes.
    history_ : list of lists of dict, one list for each row of ``coef_``
        The certified records of each run (``Record.as_dict``): epochs, visits, seconds, the best primal and
        dual value so far, those of the solver's own point...
    n_iter_ : int
        Epochs, of the classifier that took the most.
    n_features_in_ : int
        The number of columns seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has names that are all strings.

    Notes
    -----
    X is used as it is, without a copy, where it is C-ordered or CSR, in float32 or float64. Sums
    run in float64 in any case, in training and for scores.

    ``to_model`` gives a ``dualgap.Model``, which can be saved, and verified by anybody who has the training
    rows.

    Ctrl-C ends ``fit`` with a ``KeyboardInterrupt``, which stops a grid search too, after the attributes have
    been set from the best model so far.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from dualgap.estimators import LinearSVC
    >>> X, y = make_classification(n_features=5, random_state=0)
    >>> model = LinearSVC(C=1.0, tol=1e-3, random_state=0).fit(X, y)
    >>> model.certificate_[0].relative_gap <= 1e-3
    True
    >>> model.score(X, y) > 0.9
    True
    """

    classes_: Any

    def __init__(
        self,
        C: float = 1.0,
        loss: str | Loss = "hinge",
        tol: float = 1e-3,
        *,
        fit_intercept: bool = True,
        bias: str = "exact",
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        max_iter: float = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        output: str = "best",
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.bias = bias
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.solver = solver
        self.solver_options = solver_options
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.output = output
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Train on rows and their labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,)
            Their labels, of two classes at least.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows, 1 by default. Weight 2 is the row twice, weight 0 is no row.

        Returns
        -------
        LinearSVC
            The estimator itself.
        """
        loss = loss_for(self.loss, "classification", type(self).__name__)
        X, y = rows_of(self, X, y, training=True)
        check_classification_targets(y)
        labels = Labels.of(y).classes
        codes = Labels(labels).encode(y)
        weight = weights_of(sample_weight, X.shape[0])
        factors = class_factors(self.class_weight, labels, codes, weight)
        weight = weight * factors[codes]
        present = np.flatnonzero(np.bincount(codes[weight != 0], minlength=labels.size))
        classes, absent = labels[present], Labels(np.delete(labels, present)).plain
        two_or_more(classes.tolist(), labels.tolist())
        positive = present if classes.size > 2 else present[1:]

        def target(k: int) -> Floats:
            return signs(codes, positive[k])

        models, pressed = self._train(X, target, positive.size, weight, loss)
        self.classes_ = classes
        self._absent = absent
        self._class_weight = None if self.class_weight is None else tuple(factors[present].tolist())
        self._conclude(X, models, pressed, [f"class {label!r}" for label in labels[positive].tolist()])
        return self

    def _labels(self) -> tuple[Any, ...]:
        return Labels(self.classes_).plain

    def decision_function(self, X: Any) -> Any:
        """Signed scores of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes one score a row, positive for ``classes_[1]``; else one for each class.
        """
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """Labels of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            For each row the class of the highest score.
        """
        return labels_of(self.decision_function(X), self.classes_)
