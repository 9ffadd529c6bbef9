"""The form of code that survives renamed locals, another layout and another style: a tree's tokens, normalised once."""

import re
from dataclasses import dataclass

from unstuck.verify.audit.trees import Node, Tree

_MEMBER = frozenset({".", "::", "->", "?.", "&.", "!!.", "?->", "#"})
_CALLS = frozenset({"(", "!", "{", "<", "[", ".(", "do", "?."})
_OWN = frozenset({"self", "this", "$this", "@"})
_NOISE = frozenset({
    ";", "await", "async", "try", "self", "this", "$this", "let", "const", "var", "val", "mut", "final", "new", "&", "*", "$", "return",
})  # fmt: skip
_QUOTES = re.compile(r"""^[A-Za-z@$]{0,3}(?P<q>\"{3}|'{3}|["'`])(?P<body>.*)(?P=q)$""", re.DOTALL)
_CALLED_FIELD = frozenset({"function", "method", "macro", "target"})


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """The tokens of a tree as words: what stays the same when only names of locals and layout change."""

    tree: Tree
    words: list[str]
    called: list[bool]
    """Of each token, whether it names something that is called, looked up in something, or a constant."""
    receivers: list[str]
    """Of each token after a dot, what stands before the dot."""

    def key(self, start: int, end: int) -> str:
        return " ".join(word for word in self.words[start:end] if word)

    def names(self, start: int, end: int) -> frozenset[str]:
        return frozenset(self.words[at] for at in range(start, end) if self.called[at])

    def values(self, start: int, end: int) -> tuple[str, ...]:
        tokens = self.tree.tokens
        return tuple(self.words[at] for at in range(start, end) if tokens[at].sort in {"str", "num", "truth"})


def form_of(tree: Tree) -> Form:
    """Normalise the tokens of a tree."""
    tokens = tree.tokens
    words: list[str] = []
    called: list[bool] = []
    receivers: list[str] = []
    last = len(tokens) - 1
    for at, token in enumerate(tokens):
        before = tokens[at - 1].text if at else ""
        after = tokens[at + 1].text if at < last else ""
        member = before in _MEMBER
        receivers.append(tokens[at - 2].text if member and at > 1 else "")
        name = False
        match token.sort:
            case "id" if token.text in _NOISE:
                word = ""
            case "id":
                own = member and receivers[-1] in _OWN and after not in _CALLS
                name = not own and (member or after in _CALLS or _is_callee(token.node) or token.text[:1].isupper())
                word = token.text if name else "_"
            case "str":
                found = _QUOTES.match(token.text)
                word = repr(found["body"] if found else token.text)
            case "num":
                word = token.text.replace("_", "").rstrip("lLuUfFdDmM") or token.text
                if before == "-" and words and tokens[at - 2].sort == "op" and tokens[at - 2].text not in {")", "]"}:
                    words[-1], word = "", f"-{word}"
            case "truth":
                word = token.text.lower()
            case _:
                word = "" if token.text in _NOISE or (token.text == "," and after in {")", "]", "}"}) else token.text
        words.append(word)
        called.append(name)
    return Form(tree, words, called, receivers)


def _is_callee(node: Node) -> bool:
    if node.role in _CALLED_FIELD:
        return True
    parent = node.parent
    return (
        parent is not None
        and parent.kind == "infix_expression"
        and len(parent.children) > 1
        and parent.children[1] is node
    )
