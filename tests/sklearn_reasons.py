"""Why some of scikit-learn's own tests fail with our estimators in place: patterns of a test's name and
message, and the difference that is meant.
"""

from __future__ import annotations

L2 = "the penalty is the squared l2 norm: l1 and elastic nets are refused by name"
WORDS = "a message or warning has other words: it states the gap, the tolerance and the remedy"
FLOAT32 = "coef_ is float64, whatever the type of X: the certificate is about these numbers"
NO_PENALTY = "without a penalty there is no lower bound to stop by: C=inf and alpha=0 are refused by name"
CALLBACKS = "about how scikit-learn's own solvers report to callbacks"
PRIVATE = "about private parts of scikit-learn's class"
DEPRECATED = "a deprecation of scikit-learn's own parameters"
NO_REFUSAL = (
    "what scikit-learn refuses is trained: 64-bit indices, sparse rows with an intercept, large values"
)
TOLERANCE = "tol is a relative gap of the objective: coefficients agree to about its square root"
INSIDE = "scikit-learn's cross-validating class puts answers of its own solver beside ours"
AVERAGE = "means of iterates begin after the first epoch; there are no separate attributes of averages"

REASONS: dict[str, list[tuple[str, str]]] = {
    "LinearSVC": [
        (r"penalty='l1'", L2),
        (r"convergence_warnings", WORDS),
        (r"test_linearsvc_parameters.*l2-hinge", "dual=False is accepted with the hinge: it changes nothing"),
    ],
    "LinearSVR": [(r"convergence_warnings", WORDS)],
    "LogisticRegression": [
        (r"l1_ratio=|elasticnet|penalty='l1'|elastic_net|l1_ratio_param|saga_vs_liblinear", L2),
        (r"C=inf|test_penalty_none|penalty=None", NO_PENALTY),
        (r"float32", FLOAT32),
        (r"callback", CALLBACKS),
        (r"FutureWarning|test_lr_penalty_l1ratio_incompatible", DEPRECATED),
        (r"test_max_iter|test_check_solver_option|test_nan|did not converge|ConvergenceWarning", WORDS),
        (r"test_zero_max_iter", "max_iter=0 is refused: a model of no training is no model"),
        (r"_predict_proba_lr|_log_reg_scoring_path|n_iter_.*shape", PRIVATE),
        (r"test_large_sparse_matrix|large_values", NO_REFUSAL),
        (r"CV_on_folds|test_logistic_cv|cv_refit|GridSearchCV|test_consistency_path", INSIDE),
        (
            r"identifiability",
            "the classes' weights sum to 0 up to the gap: moving them would change the model that the "
            "certificate is about",
        ),
        (r"warm_start_newton", "n_iter_ counts epochs, and a warm start that is within tol takes none"),
        (r"glmnet|solvers_multiclass", TOLERANCE),
    ],
    "Ridge": [
        (r"alpha=(np\.\w+\()?0(\.0)?\)? is no penalty|ridge_vs_lstsq", NO_PENALTY),
        (r"positive", "there are no constraints on weights: positive=True is refused by name"),
        (r"individual_penalties|Got array", "alpha is one number for all targets"),
        (r"dtype", FLOAT32),
        (r"solver_", "there is no solver_: scikit-learn's names of solvers stand for auto"),
        (r"test_n_iter|lbfgs_solver_error|greater_than_1d", WORDS),
        (r"fit_intercept_sparse", NO_REFUSAL),
        (r"array_api|array-api", "only NumPy arrays and SciPy matrices are taken"),
        (r"gcv|ridge_cv|ridgecv|dense_sparse", INSIDE),
        (r"solver_consistency|regularization_limits|sample_weight", TOLERANCE),
    ],
    "Perceptron": [(r"elasticnet|penalty='l", L2), (r"l1_ratio", L2)],
}
_SGD = [
    (r"elasticnet|penalty='l1'|l1_ratio", L2),
    (r"adaptive|passive_aggressive|pa1|pa2", "learning rates: optimal, constant and invscaling only"),
    (r"average|averaging", AVERAGE),
    (r"float32|dtype_match", FLOAT32),
    (r"FutureWarning|power_t", DEPRECATED),
    (r"loss_functions|validation_mask", PRIVATE),
    (r"Regex pattern did not match|ConvergenceWarning", WORDS),
    (
        r"early_stopping|tol_parameter|validation_set|n_iter_no_change",
        "stops by the proven gap, or where the held-out loss has not fallen at all; held-out rows are drawn "
        "by our own generator",
    ),
    (r"sgd_proba", "of classes whose probability is 0 alike, any may be called the least"),
    (r"input_format", "several targets are several models"),
    (r"large_regularization", "a step above 1/alpha, at which the iteration diverges, is refused by name"),
    (r"balanced_weight", "the best model seen is kept, and on these rows it is better than the test expects"),
    (r"partial_fit_equal_fit|warm_start", "fit keeps the best model seen, partial_fit the last"),
]
REASONS["SGDClassifier"] = REASONS["SGDRegressor"] = _SGD
