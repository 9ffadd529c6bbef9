"""Write what verification found in changes as SARIF, for code hosts and editors."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from unstuck.journal import Remark

if TYPE_CHECKING:
    from unstuck.verify.audit import Finding


def sarif_text(remarks: Iterable[Remark]) -> str:
    """Return the document as text."""
    from unstuck import __version__  # noqa: PLC0415  # as below
    from unstuck.verify.sarif import sarif  # noqa: PLC0415  # heavy: it knows all rules of the audit

    return json.dumps(sarif(map(_finding, remarks), version=__version__), indent=2, ensure_ascii=False) + "\n"


def _finding(remark: Remark) -> "Finding":
    from unstuck.verify.audit import Finding  # noqa: PLC0415  # as above

    return Finding(rule=remark.rule, severity=remark.severity, path=remark.path, line=remark.line, says=remark.says)
