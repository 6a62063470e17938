"""A notebook with parameters: what it depends on, its execution, receipts, schedule, sweeps, editions."""

import sys

# Whatever reads or runs a notebook loads jsonschema, and with it this package, whose grammars cost every process more
# than a second.  They tell whether an international address is one, which no notebook is asked.  A name that stands for
# nothing counts as not installed.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
