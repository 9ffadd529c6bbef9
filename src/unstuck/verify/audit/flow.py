"""Whether a place in a test can be reached, and whether a failure there is heard."""

import re
from functools import cache

from unstuck.verify.audit.forms import Form
from unstuck.verify.audit.trees import Node

_BLOCK = re.compile(
    r"block$|_body$|^body$|^statements$|^statement_list$|^compound_statement$|^program$|^module$|^source|^translation_unit$|^compilation_unit$"
    r"|^lambda_literal$|^body_statement$|^declaration_list$|^then$|^else|^ensure$|^do$|^stab_clause$|^begin$|^do_block$|^keywords$|^class_body$"
    r"|^arrow_function$|^lambda|^anonymous_function$|^closure_expression$|^func_literal$|^preproc_if|^switch_|_case$|^ERROR$|^arrow_expression_clause$|^when_entry$"
    r"|^match_arm$|^linkage_specification$|^namespace|^mod_item$|^else_clause$|^template_declaration$"
)
FUNCTION = re.compile(
    r"^(?:function_(?:definition|declaration|item)|method(?:_declaration|_definition)?|singleton_method|local_function_statement"
    r"|constructor_declaration|generator_function_declaration)$"
)
LAMBDA = re.compile(
    r"^(?:arrow_function|function_expression|lambda\w*|anonymous_\w*function\w*|closure_expression|func_literal|do_block|block|annotated_lambda|anonymous_method_expression|compound_statement|statement_block|function)$"
)
_EXIT = re.compile(r"^(?:return|throw|raise|break|continue|next|control_transfer|jump|exit)")
_CONDITIONAL = re.compile(r"^(?:if|while|elsif|unless|elif|guard|preproc_if|conditional)")
_HANDLER = re.compile(r"^(?:catch|except|rescue)")
_AFTER = re.compile(r"^(?:else|finally|ensure|after)")
_BROAD = frozenset({
    "Exception", "Throwable", "Error", "AssertionError", "BaseException", "AssertionFailedError", "StandardError", "ComparisonFailure", "XunitException", "AssertionException", "ExpectationFailedException", "object", "all",
})  # fmt: skip
_LOUD = re.compile(
    r"(?i)\b(?:throw|raise|fail\w*|panic|reject|rethrow|error|fatal\w*|errorf|done|next|flunk|reraise|exit|abort|expect\w*|assert\w*|t\.\w+|XCT\w+|CHECK\w*|REQUIRE\w*)\b"
)
_FALSY = frozenset({"false", "0", "nil", "null", "none", "''", "undefined"})
_PLAIN = frozenset({"(", ")", "not", "!", ":"})

NEVER_REACHED = "is never reached"
SWALLOWED = "can fail without anybody hearing of it"


@cache
def is_block(kind: str) -> bool:
    """Tell whether nodes of this kind hold statements."""
    return _BLOCK.search(kind) is not None


def why_idle(form: Form, node: Node) -> str:
    """Say why an assertion can no longer fail; nothing where it can."""
    child = node
    for above in (node, *node.above()):
        if above is not node:
            if is_block(above.kind) and _after_exit(above, child):
                return NEVER_REACHED
            if _CONDITIONAL.match(_kind(form, above)) and _shut(form, above, child):
                return NEVER_REACHED
            if above.handlers is None:
                above.handlers = [part for part in above.children if _HANDLER.match(part.kind)]
            inside = not _HANDLER.match(child.kind) and not _AFTER.match(child.kind)
            if inside and any(_swallows(form, part) for part in above.handlers):
                return SWALLOWED
            if _drops(form, above):
                return SWALLOWED
        child = above
    return ""


def is_guarded(node: Node, top: Node) -> bool:
    """Tell whether a place is reached on a condition only."""
    for above in node.above():
        if above is top:
            return False
        if _CONDITIONAL.match(above.kind):
            return True
    return False


def is_exit(node: Node) -> bool:
    """Tell whether a statement leaves its block whatever happens."""
    while node.kind in {"expression_statement", "statement"} and len(node.children) == 1:
        node = node.children[0]
    return _EXIT.match(node.kind) is not None and not node.kind.endswith("modifier")


def is_guard(form: Form, node: Node) -> bool:
    """Tell whether a statement does nothing but leave its test on a condition."""
    while node.kind in {"expression_statement", "statement"} and len(node.children) == 1:
        node = node.children[0]
    if not _CONDITIONAL.match(node.kind):
        return False
    words = [form.tree.tokens[at].text for at in range(node.start, node.end)]
    body = next(
        (part for part in reversed(node.children) if part.role in {"consequence", "body"} or is_block(part.kind)), None
    )
    if body is None:
        body = node.children[-1] if node.children else node
    inner = [form.tree.tokens[at].text for at in range(body.start, body.end)]
    leaves = [word for word in inner if word not in {"{", "}", ";", "then", "end", ":", "(", ")"}]
    return (
        leaves in (["return"], ["next"], ["return", "nil"], ["return", "Ok"], ["return", "None"])
        and "else" not in words
    )


def _kind(form: Form, node: Node) -> str:
    """Give the kind of a node; where everything is a call, as in Elixir, the name of what is called."""
    if node.kind == "call" and node.end > node.start and form.tree.tokens[node.start].text in {"if", "unless"}:
        return form.tree.tokens[node.start].text
    return node.kind


def _after_exit(block: Node, child: Node) -> bool:
    if block.left < 0:
        block.left = next((part.start for part in block.children if is_exit(part)), block.end)
    return child.start > block.left


def _shut(form: Form, node: Node, child: Node) -> bool:
    """Tell whether a branch belongs to a condition that is a plain constant and never holds."""
    condition = next((part for part in node.children if part.role == "condition"), None)
    if condition is None:
        condition = next((part for part in node.children if part.kind != "identifier" or part.role != "target"), None)
    if condition is None or child is condition:
        return False
    words = [form.words[at] for at in range(condition.start, condition.end)]
    bare = [word for word in words if word and word not in _PLAIN]
    negated = ("!" in words) ^ ("not" in words) ^ _kind(form, node).startswith("unless")
    if len(bare) != 1:
        constant = condition.end > condition.start and all(
            form.tree.tokens[at].sort in {"num", "str", "op"} for at in range(condition.start, condition.end)
        )
        return constant and len(bare) == 3 and (bare[0] == bare[2]) != (bare[1] in {"==", "===", "is"})  # noqa: PLR2004
    if form.tree.tokens[condition.end - 1].sort == "id":
        return False
    holds = (bare[0].lower() not in _FALSY) ^ negated
    sorts = {form.tree.tokens[at].sort for at in range(condition.start, condition.end)} - {"op"}
    if not sorts <= {"truth", "num", "str"}:
        return False
    otherwise = child.role == "alternative" or child.kind.startswith(("else", "preproc_else"))
    return holds if otherwise else not holds


def is_silent(form: Form, node: Node) -> bool:
    """Tell whether code neither fails, nor passes a failure on."""
    words = (token.text for token in form.tree.tokens[node.start : node.end] if token.sort != "str")
    return _LOUD.search(" ".join(words)) is None


def _swallows(form: Form, handler: Node) -> bool:
    body = next((part for part in reversed(handler.children) if is_block(part.kind)), None)
    if body is not None and not is_silent(form, body):
        return False
    head = form.tree.tokens[handler.start : body.start if body is not None else handler.end]
    kinds = {token.text for token in head if token.sort == "id" and token.text[:1].isupper()}
    return not kinds or bool(kinds & _BROAD)


def _drops(form: Form, node: Node) -> bool:
    """Tell whether a call runs its block but drops what fails in it."""
    if node.kind == "with_statement" and node.children:
        clause = node.children[0]
        return any(form.tree.tokens[at].text == "suppress" for at in range(clause.start, clause.end))
    if "call" not in node.kind and "invocation" not in node.kind:
        return False
    head = node.children[0] if node.children else node
    words = {form.tree.tokens[at].text for at in range(head.start, min(head.end, head.start + 12))}
    return bool(words & {"catch_unwind", "runCatching", "suppress", "assertDoesNotThrowAny"})
