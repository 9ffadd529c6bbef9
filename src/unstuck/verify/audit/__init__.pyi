from unstuck.verify.audit.auditing import accounted as accounted
from unstuck.verify.audit.auditing import asserts as asserts
from unstuck.verify.audit.auditing import audit as audit
from unstuck.verify.audit.settings import is_harmless as is_harmless
from unstuck.verify.audit.turning import asking_otherwise as asking_otherwise
from unstuck.verify.audit.turning import expecting_otherwise as expecting_otherwise
