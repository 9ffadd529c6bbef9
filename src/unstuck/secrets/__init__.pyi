from unstuck.secrets.redact import REDACTED as REDACTED
from unstuck.secrets.redact import Redactor as Redactor
from unstuck.secrets.redact import redactor as redactor
