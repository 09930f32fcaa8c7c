"""How fitted estimators are shown in notebooks: what is proven of them, above scikit-learn's diagram."""

from __future__ import annotations

from html import escape
from typing import Any

from ..core.certificate import proven

_LINE = (
    '<div style="font-family: monospace; margin: 0.3em 0; padding: 0.2em 0.6em; '
    'border-left: 0.25em solid {colour};">{text}</div>'
)


def in_words(certificates: list[Any]) -> str:
    """What certificates prove together, in a line."""
    worst = max(certificates, key=lambda certificate: certificate.relative_gap)
    several = f"each of {len(certificates)} models " if len(certificates) > 1 else ""
    return f"{several}{proven(worst)}"


class Displayed:
    """An estimator whose HTML begins with what is proven of it."""

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """For notebooks: scikit-learn's, with a line before it."""
        found = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in found:
            found["text/html"] = self._proven_html() + found["text/html"]
        return found

    def _proven_html(self) -> str:
        """The line, for a fitted estimator."""
        if "coef_" not in vars(self):
            return ""
        certificates = list(self.certificate_)  # type: ignore[attr-defined]
        if not certificates:
            return ""
        good = all(certificate.relative_gap <= 1e-2 for certificate in certificates)
        name = type(self).__name__
        return _LINE.format(
            colour="#2a9d4a" if good else "#c77700", text=escape(f"{name}: {in_words(certificates)}")
        )
