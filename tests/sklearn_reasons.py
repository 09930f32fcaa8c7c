"""Why some of scikit-learn's own tests fail with our estimators in place: patterns of a test's name and
message, and the difference that is meant.
"""

from __future__ import annotations

REASONS: dict[str, list[tuple[str, str]]] = {}
