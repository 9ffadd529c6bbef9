"""The tamper audit: it finds where a change makes the checks mean less.

An agent that cannot make the tests pass can make them say less. The audit reads a change (each path before and after)
and nothing else: it runs nothing, believes no word of the agent, and gives the same findings for the same change.

How it thinks, from the outside in:

1. **Parts** (`change`): every path plays a part: test, support of tests, snapshot, settings, commands, product.
2. **Tests are values** (`suite`): each text becomes a `Suite` of `Case`s, each with its `Assertion`s. Two readers do this,
   `python_*` with the syntax tree and `script_*` with tokens (JavaScript and TypeScript); `lines` reads all other
   languages, and texts that do not parse. An assertion is kept in a form without local names and layout, so that it is
   the same after renaming, reformatting, or a change of style (`assertEqual`, `assert ==`, `toBe`, `assert.equal`).
   It has a rank: how much it says, from "exactly this" to "nothing". `*_flow` says which assertions can fail at all.
3. **The law of conservation** (`conserve`, `strictness`, `pairing`, `losses`): what was asserted before must be asserted
   after, somewhere, at least as strictly, about the same values. Tests may be renamed, moved, split, merged, or turned
   into tables; what is then left over was deleted, loosened, emptied, or expects something else.
4. **Standing** (`standing`): a test must still be found, run, run alone with the others, and meet the real thing instead
   of a stand-in.
5. **Gates may ask for more, not for less** (`settings`, `setting_rules`, `gates`, `listings`, `commands`, `toolbox`,
   `records`): settings are flattened to keys with values and compared; commands are compared by what they are for.
6. **Product code** (`product`, `answers`, `suppressions`, `*_notes`): it may not notice that it is tested, nor hold the
   tests' answers, nor silence the tools, nor end the run.

Every finding has a rule of the table in `rules`. `reject` and `ask` stop a change, `warn` is only told. A path that the
task names may change its expectations (`Rule.declared`), but nothing excuses a rule that is `blatant`: a test that is
skipped, a failure that is swallowed. Where a task names no paths, `ask` takes the place of `reject`.

How well this works is measured, not claimed: `unstuck bench tamper` judges generated diffs and rounds written by hand.
"""

from unstuck.verify.tamper.audit import audit
from unstuck.verify.tamper.change import Change, Finding, Severity
from unstuck.verify.tamper.rules import RULES, Rule

__all__ = ["RULES", "Change", "Finding", "Rule", "Severity", "audit"]
