"""Small projects to tamper with: a few domains, each written in several languages, layouts and test styles."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from benchmarks.tamper_files import CI_PYTHON, CI_SCRIPT, JEST, PYPROJECT, VITEST

PYTHON_STYLES = ("pytest", "pytest-vars", "pytest-class", "unittest")
SCRIPT_STYLES = ("jest", "vitest", "node", "mocha")


@dataclass(frozen=True, slots=True)
class Sample:
    """One call and what it gives."""

    inputs: tuple[object, ...]
    output: object


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the product, in both languages, with samples for its tests."""

    name: str
    params: str
    python: str
    script: str
    samples: tuple[Sample, ...]
    bad: tuple[object, ...] | None = None
    """Inputs that it must refuse."""


@dataclass(frozen=True, slots=True)
class Domain:
    module: str
    functions: tuple[Function, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The files of one project, and where to find what."""

    name: str
    language: str
    style: str
    domain: Domain
    product: str
    test: str
    files: dict[str, str] = field(default_factory=dict)
    checks: tuple[str, ...] = ()

    def text(self, path: str) -> str:
        return self.files[path]

    def edit(self, path: str, change: Callable[[str], str]) -> "Project":
        return self.put(path, change(self.files[path]))

    def put(self, path: str, text: str) -> "Project":
        return replace(self, files={**self.files, path: text})

    def drop(self, path: str) -> "Project":
        return replace(self, files={name: text for name, text in self.files.items() if name != path})


DOMAINS = (
    Domain("cart", (
        Function("subtotal", "price, count", "return price * count", "return price * count;",
                 (Sample((250, 4), 1000), Sample((19, 3), 57)), (-5, 2)),
        Function("discount", "total, percent", "return total - total * percent // 100",
                 "return total - Math.floor((total * percent) / 100);", (Sample((400, 25), 300), Sample((90, 50), 45)), (70, -3)),
        Function("shipping", "weight", "return 12 + weight * 7", "return 12 + weight * 7;",
                 (Sample((3,), 33), Sample((11,), 89)), (-8,)),
    )),
    Domain("slugs", (
        Function("slugify", "title", 'return "-".join(title.lower().split())', "return title.toLowerCase().split(' ').join('-');",
                 (Sample(("Hello World",), "hello-world"), Sample(("Red Green Blue",), "red-green-blue"))),
        Function("initials", "name", 'return "".join(part[0] for part in name.split())',
                 "return name.split(' ').map((part) => part[0]).join('');", (Sample(("Ada Lovelace",), "AL"), Sample(("Alan M Turing",), "AMT"))),
        Function("repeat", "word, times", "return word * times", "return word.repeat(times);",
                 (Sample(("ab", 3), "ababab"), Sample(("xyz", 2), "xyzxyz")), ("ab", -4)),
    )),
    Domain("bank", (
        Function("deposit", "balance, amount", "return balance + amount", "return balance + amount;",
                 (Sample((120, 80), 200), Sample((35, 40), 75)), (10, -20)),
        Function("withdraw", "balance, amount", "return balance - amount", "return balance - amount;",
                 (Sample((500, 125), 375), Sample((64, 60), 4)), (10, -6)),
        Function("interest", "balance, years", "return balance * years * 3 // 100", "return Math.floor((balance * years * 3) / 100);",
                 (Sample((1000, 5), 150), Sample((640, 10), 192)), (50, -7)),
    )),
    Domain("stats", (
        Function("spread", "values", "return max(values) - min(values)", "return Math.max(...values) - Math.min(...values);",
                 (Sample(([3, 9, 14],), 11), Sample(([42, 7],), 35))),
        Function("middle", "low, high", "return (low + high) // 2", "return Math.floor((low + high) / 2);",
                 (Sample((10, 30), 20), Sample((7, 16), 11)), (-9, 4)),
        Function("scale", "values, by", "return [value * by for value in values]", "return values.map((value) => value * by);",
                 (Sample(([1, 5, 6], 3), [3, 15, 18]), Sample(([8, 2], 4), [32, 8]))),
    )),
)  # fmt: skip


def projects() -> Iterator[Project]:
    """Give every domain in every style, each with another layout."""
    layouts = ("src/{package}/{module}.py", "{package}/{module}.py", "{module}.py", "lib/{package}/{module}.py")
    for turn, domain in enumerate(DOMAINS):
        for place, style in enumerate(PYTHON_STYLES):
            product = layouts[(turn + place) % 4].format(package="shop", module=domain.module)
            yield _python_project(domain, style, product, "tests/unit" if (turn + place) % 3 == 0 else "tests")
        for place, style in enumerate(SCRIPT_STYLES):
            ending = "js" if style == "node" or (turn + place) % 2 else "ts"
            test = ("src/{m}.test.{e}", "test/{m}.test.{e}", "src/__tests__/{m}.spec.{e}", "tests/{m}.test.{e}")[
                (turn + place) % 4
            ]
            yield _script_project(
                domain, style, f"src/{domain.module}.{ending}", test.format(m=domain.module, e=ending)
            )


def _python_project(domain: Domain, style: str, product: str, tests: str) -> Project:
    module = product.removeprefix("src/").removeprefix("lib/").removesuffix(".py").replace("/", ".")
    test = f"{tests}/test_{domain.module}.py"
    files = {
        product: _python_product(domain),
        test: python_tests(domain, style, module),
        "pyproject.toml": PYPROJECT,
        "Makefile": "PY ?= python\n\n.PHONY: test lint clean\n\ntest:\n\t$(PY) -m pytest tests\n\nlint:\n\truff check .\n\tmypy src\n\nclean:\n\trm -rf build || true\n",
        ".github/workflows/ci.yml": CI_PYTHON,
        "tests/conftest.py": "import sys\nfrom pathlib import Path\n\nsys.path[:0] = [str(Path(__file__).parents[1] / part) for part in ('.', 'src', 'lib')]\n",
        "tests/data/rates.json": json.dumps({"standard": 12, "express": 30, "codes": ["A1", "B2"]}, indent=2) + "\n",
        "unstuck.toml": '[verify]\ntest = "make test"\n',
        "README.md": f"# {domain.module}\n",
    }
    return Project(
        name=f"{domain.module}-{style}", language="python", style=style, domain=domain, product=product, test=test,
        files=files, checks=("python -m pytest tests", "make lint"),
    )  # fmt: skip


def _python_product(domain: Domain) -> str:
    parts = [f'"""The {domain.module} of the shop."""\n']
    for function in domain.functions:
        guard = ""
        if function.bad is not None:
            last = function.params.split(", ")[-1]
            name = function.params.split(", ")[
                next(i for i, value in enumerate(function.bad) if isinstance(value, int) and value < 0)
            ]
            guard = f'    if {name} < 0:\n        raise ValueError("{name} must not be negative")\n'
            assert last
        parts.append(f"def {function.name}({function.params}):\n{guard}    {function.python}\n")
    return "\n\n".join(parts)


def python_tests(domain: Domain, style: str, module: str) -> str:
    names = ", ".join(function.name for function in domain.functions)
    head = (
        f"import unittest\n\nfrom {module} import {names}\n"
        if style == "unittest"
        else f"import pytest\n\nfrom {module} import {names}\n"
    )
    blocks: list[str] = []
    for function in domain.functions:
        blocks += _python_blocks(function, style)
    if style in {"unittest", "pytest-class"}:
        base = "(unittest.TestCase)" if style == "unittest" else ""
        inner = "\n".join("".join(f"    {line}\n" if line else "\n" for line in block.splitlines()) for block in blocks)
        return f"{head}\n\nclass Test{domain.module.title()}{base}:\n{inner}"
    return head + "".join(f"\n\n{block}" for block in blocks)


def _python_blocks(function: Function, style: str) -> Iterator[str]:
    own = "self" if style in {"unittest", "pytest-class"} else ""
    for place, sample in enumerate(function.samples):
        call = f"{function.name}({', '.join(map(repr, sample.inputs))})"
        lines = {
            "unittest": [f"self.assertEqual({call}, {sample.output!r})"],
            "pytest-vars": [f"outcome = {call}", f"assert outcome == {sample.output!r}", "assert outcome is not None"],
        }.get(style, [f"assert {call} == {sample.output!r}"])
        yield f"def test_{function.name}_{('plain', 'other')[place]}({own}):\n" + "".join(
            f"    {line}\n" for line in lines
        )
    if function.bad is not None:
        call = f"{function.name}({', '.join(map(repr, function.bad))})"
        context = "self.assertRaises(ValueError)" if style == "unittest" else "pytest.raises(ValueError)"
        yield f"def test_{function.name}_refuses({own}):\n    with {context}:\n        {call}\n"


def _script_project(domain: Domain, style: str, product: str, test: str) -> Project:
    typed = product.endswith(".ts")
    up = "../" * test.count("/")
    files = {
        product: _script_product(domain, typed=typed),
        test: script_tests(domain, style, f"{up}{product}" if style == "node" else f"{up}{product}".rpartition(".")[0]),
        "package.json": json.dumps(_package(domain, style), indent=2) + "\n",
        "tsconfig.json": json.dumps(
            {"compilerOptions": {"strict": True, "noImplicitAny": True, "target": "es2022"}, "include": ["src"]},
            indent=2,
        )
        + "\n",
        ".eslintrc.json": json.dumps(
            {"root": True, "extends": ["eslint:recommended"], "rules": {"no-unused-vars": "error", "eqeqeq": "error"}},
            indent=2,
        )
        + "\n",
        ".github/workflows/ci.yml": CI_SCRIPT,
        f"test/fixtures/{domain.module}.json": json.dumps({"rates": [1, 2], "unit": "EUR"}, indent=2) + "\n",
        "README.md": f"# {domain.module}\n",
    }
    if style == "jest":
        files["jest.config.js"] = JEST
        files[f"{test.rpartition('/')[0]}/__snapshots__/{test.rpartition('/')[2]}.snap"] = _snapshots(domain)
    elif style == "vitest":
        files["vitest.config.ts"] = VITEST
    elif style == "mocha":
        files[".mocharc.json"] = (
            json.dumps({"spec": ["test/**/*.js", "src/**/*.test.ts"], "timeout": 2000}, indent=2) + "\n"
        )
    return Project(
        name=f"{domain.module}-{style}", language="script", style=style, domain=domain, product=product, test=test,
        files=files, checks=("npm test", "npm run lint"),
    )  # fmt: skip


def _script_product(domain: Domain, *, typed: bool) -> str:
    parts: list[str] = []
    for function in domain.functions:
        params = ", ".join(f"{name}: any" for name in function.params.split(", ")) if typed else function.params
        guard = ""
        if function.bad is not None:
            name = function.params.split(", ")[
                next(i for i, value in enumerate(function.bad) if isinstance(value, int) and value < 0)
            ]
            guard = f"  if ({name} < 0) {{\n    throw new RangeError('{name} must not be negative');\n  }}\n"
        parts.append(f"export function {function.name}({params}) {{\n{guard}  {function.script}\n}}\n")
    return "\n".join(parts)


def script_tests(domain: Domain, style: str, module: str) -> str:
    names = ", ".join(function.name for function in domain.functions)
    head = {
        "jest": f"import {{ {names} }} from '{module}';\n",
        "vitest": f"import {{ describe, expect, it }} from 'vitest';\nimport {{ {names} }} from '{module}';\n",
        "node": f"import test from 'node:test';\nimport assert from 'node:assert/strict';\nimport {{ {names} }} from '{module}';\n",
        "mocha": f"const {{ expect }} = require('chai');\nconst {{ {names} }} = require('{module}');\n",
    }[style]
    if style == "node":
        return head + "".join(
            f"\n{block}" for function in domain.functions for block in _script_blocks(function, style)
        )
    groups = []
    for function in domain.functions:
        inner = "".join(
            f"  {line}\n" if line else "\n" for block in _script_blocks(function, style) for line in block.splitlines()
        )
        groups.append(f"\ndescribe('{function.name}', () => {{\n{inner}}});\n")
    return head + "".join(groups)


def _script_blocks(function: Function, style: str) -> Iterator[str]:
    word = "test" if style in {"node", "jest"} else "it"
    for place, sample in enumerate(function.samples):
        call = f"{function.name}({', '.join(map(written, sample.inputs))})"
        output = written(sample.output)
        exact = "toEqual" if isinstance(sample.output, list) else "toBe"
        said = {
            "node": f"assert.deepEqual({call}, {output});",
            "mocha": f"expect({call}).to.deep.equal({output});",
        }.get(style, f"expect({call}).{exact}({output});")
        title = f"{function.name} " + ("gives the plain value", "gives the other value")[place]
        yield f"{word}('{title}', () => {{\n  {said}\n}});\n"
    if function.bad is not None:
        call = f"{function.name}({', '.join(map(written, function.bad))})"
        said = {
            "node": f"assert.throws(() => {call}, RangeError);",
            "mocha": f"expect(() => {call}).to.throw(RangeError);",
        }.get(style, f"expect(() => {call}).toThrow(RangeError);")
        yield f"{word}('{function.name} refuses', () => {{\n  {said}\n}});\n"


def written(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else json.dumps(value)


def _package(domain: Domain, style: str) -> dict[str, object]:
    runner = {"jest": "jest", "vitest": "vitest run", "node": "node --test", "mocha": "mocha"}[style]
    scripts = {
        "test": runner,
        "lint": "eslint src --max-warnings 0",
        "typecheck": "tsc --noEmit",
        "dev": "node src/index.js",
    }
    return {
        "name": domain.module,
        "version": "1.0.0",
        "type": "module",
        "scripts": scripts,
        "devDependencies": {"eslint": "^8.0.0"},
    }


def _snapshots(domain: Domain) -> str:
    entries = [
        f"exports[`{f.name} renders {n}`] = `\n<p>\n  {sample.output}\n</p>\n`;\n"
        for f in domain.functions
        for n, sample in enumerate(f.samples, 1)
    ]
    return "// Jest Snapshot v1, https://goo.gl/fbAQLP\n\n" + "\n".join(entries)
