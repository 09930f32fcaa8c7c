"""
Pegasos and SDCA, as in the textbook
====================================

Stochastic subgradient descent on the primal problem against stochastic dual coordinate ascent: the objective
of each method's own iterate above the optimum, epoch by epoch. Both wiggle: Pegasos because its steps are
noisy and only their size shrinks, SDCA because its steps improve the dual value every time, and the primal
value only in the long run.

Every value in the picture was computed from all rows in float64, apart from the solvers' own sums. The dashed
lines are the best model that each run has seen, which is what ``fit`` hands back.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

import dualgap

X, y = make_classification(n_samples=4000, n_features=30, flip_y=0.1, random_state=0)
optimum = dualgap.fit(X, y, lam=1e-3, tol=1e-8).certificate.dual

figure, axes = plt.subplots(figsize=(7, 4))
for solver in ("pegasos", "sdca"):
    trace = dualgap.fit(X, y, lam=1e-3, solver=solver, tol=1e-7, max_epochs=25, record_every=2000).trace
    epochs = [record.epochs for record in trace]
    (line,) = axes.semilogy(epochs, [record.current.primal / optimum - 1 for record in trace], label=solver)
    best = [record.certificate.primal / optimum - 1 for record in trace]
    axes.semilogy(epochs, best, "--", color=line.get_color(), linewidth=1)
axes.set(xlabel="epochs", ylabel="objective above the optimum, relative")
axes.legend()
figure.tight_layout()
