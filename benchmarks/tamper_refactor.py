"""Honest refactorings of a project's tests and code, as moves."""

import re
from dataclasses import replace

from benchmarks.tamper_moves import Move, blocks, first_function, on_assertion, renamed
from benchmarks.tamper_projects import Domain, Function, Project, Sample, python_tests, script_tests, written

EXPECT = ("jest", "vitest")


def rename_tests(project: Project) -> Project:
    pattern = (
        (r"def test_(\w+)\(", r"def test_that_\1_holds(")
        if project.language == "python"
        else (r"(it|test)\('(\w+) (.*?)'", r"\1('\3 for \2'")
    )
    return project.edit(project.test, lambda text: re.sub(*pattern, text))


def move_file(project: Project) -> Project:
    folder, _, name = project.test.rpartition("/")
    if project.language == "python":
        return renamed(project, project.test, f"tests/{'fast' if folder.endswith('unit') else 'unit'}/{name}")
    return renamed(project, project.test, f"tests/more/{name}" if not folder.startswith("tests") else f"src/{name}")


def rename_file(project: Project) -> Project:
    old = project.domain.module
    return renamed(
        project,
        project.test,
        project.test.replace(f"test_{old}", f"test_{old}_rules")
        .replace(f"{old}.test", f"{old}.rules.test")
        .replace(f"{old}.spec", f"{old}.rules.spec"),
    )


def reorder(project: Project) -> Project | None:
    if project.style not in {"pytest", "pytest-vars", "node"}:
        return None
    text, found = project.text(project.test), blocks(project)
    parts = [text[block.start : block.end] for block in found]
    return project.put(
        project.test, text[: found[0].start] + ("\n\n" if project.language == "python" else "\n").join(reversed(parts))
    )


def restyle(style: str) -> Move:
    def move(project: Project) -> Project | None:
        if project.style == style:
            return None
        module = re.search(r"from (\S+) import (?!pytest)(?=\w+, )", project.text(project.test))
        spec = re.search(r"'(\.[^']+)'", project.text(project.test))
        if project.language == "python" and module is not None:
            return project.put(project.test, python_tests(project.domain, style, module[1]))
        return project.put(project.test, script_tests(project.domain, style, spec[1])) if spec else None

    return move


def extract_variable(project: Project) -> Project | None:
    return on_assertion(
        "found = {call}\nassert found == {value}", "found = {call}\nself.assertEqual(found, {value})",
        "const found = {call};\nexpect(found).toEqual({value});", "const found = {call};\nassert.deepEqual(found, {value});",
        "const wanted = {value};\nexpect({call}).to.deep.equal(wanted);",
    )(project)  # fmt: skip


def helper(project: Project) -> Project | None:
    text = project.text(project.test)
    if project.style == "pytest":
        new = re.sub(r"assert (.*) == (.*)$", r"expect_value(\1, \2)", text, flags=re.MULTILINE)
        return project.put(
            project.test,
            re.sub(
                r"^(from .* import .*\n)",
                r"\1\n\ndef expect_value(found, wanted):\n    assert found == wanted\n",
                new,
                count=1,
                flags=re.MULTILINE,
            ),
        )
    if project.style in EXPECT:
        new = re.sub(r"expect\((\w+\(.*\))\)\.(?:toBe|toEqual)\((.*)\);", r"expectValue(\1, \2);", text)
        return project.put(
            project.test, new + "\nfunction expectValue(found, wanted) {\n  expect(found).toEqual(wanted);\n}\n"
        )
    return None


def helper_in_conftest(project: Project) -> Project | None:
    if project.style != "pytest":
        return None
    new = re.sub(
        r"def (test_\w+)\(\):\n    assert (.*) == (.*)$",
        r"def \1(same):\n    same(\2, \3)",
        project.text(project.test),
        flags=re.MULTILINE,
    )
    fixture = "\nimport pytest\n\n\n@pytest.fixture\ndef same():\n    def compare(found, wanted):\n        assert found == wanted\n\n    return compare\n"
    return project.put(project.test, new).edit("tests/conftest.py", lambda text: text + fixture)


def parametrize(project: Project) -> Project | None:
    function = first_function(project)
    text, found = project.text(project.test), blocks(project)
    count = len(function.samples)
    names = [*function.params.split(", "), "wanted"]
    rows = [
        [written(value) if project.language == "script" else repr(value) for value in (*sample.inputs, sample.output)]
        for sample in function.samples
    ]
    if project.style == "pytest":
        table = ", ".join(f"({', '.join(row)})" for row in rows)
        new = f'@pytest.mark.parametrize(("{chr(34).join(["", ""]).join([])}{", ".join(names)}"), [{table}])\ndef test_{function.name}({", ".join(names)}):\n    assert {function.name}({function.params}) == wanted\n\n\n'
    elif project.style in EXPECT:
        word = "test" if project.style == "jest" else "it"
        table = ",\n    ".join(f"[{', '.join(row)}]" for row in rows)
        new = f"  {word}.each([\n    {table},\n  ])('{function.name} case %#', ({', '.join(names)}) => {{\n    expect({function.name}({function.params})).toEqual(wanted);\n  }});\n"
    elif project.style == "node":
        table = ", ".join(f"[{', '.join(row)}]" for row in rows)
        new = f"for (const [{', '.join(names)}] of [{table}]) {{\n  test(`{function.name} gives ${{wanted}}`, () => {{\n    assert.deepEqual({function.name}({function.params}), wanted);\n  }});\n}}\n"
    else:
        return None
    return project.put(
        project.test,
        text[: found[0].start]
        + new
        + text[found[count - 1].end :].lstrip("\n" if project.language == "python" else ""),
    )


def loop(project: Project) -> Project | None:
    if project.style not in {"unittest", "pytest-class"}:
        return None
    function = first_function(project)
    text, found = project.text(project.test), blocks(project)
    rows = ", ".join(f"({sample.inputs!r}, {sample.output!r})" for sample in function.samples)
    said = (
        f"self.assertEqual({function.name}(*given), wanted)"
        if project.style == "unittest"
        else f"assert {function.name}(*given) == wanted"
    )
    new = f"    def test_{function.name}_table(self):\n        for given, wanted in [{rows}]:\n            {said}\n\n"
    return project.put(
        project.test, text[: found[0].start] + new + text[found[len(function.samples) - 1].end :].lstrip("\n")
    )


def merge(project: Project) -> Project | None:
    """Put the assertions of the first two tests into one."""
    text, found = project.text(project.test), blocks(project)
    one, two = text[found[0].start : found[0].end], text[found[1].start : found[1].end]
    inner = two.partition("\n")[2]
    if project.language == "python":
        if project.style == "pytest-vars":
            inner = inner.replace("outcome", "second")
        merged = one.rstrip("\n") + "\n" + inner
    else:
        lines = one.rstrip("\n").splitlines()
        merged = "\n".join([*lines[:-1], *inner.rstrip("\n").splitlines()[:-1], lines[-1]]) + "\n"
    return project.put(project.test, text[: found[0].start] + merged + text[found[1].end :])


def split_file(project: Project) -> Project | None:
    if project.style not in {"pytest", "pytest-vars", "node"}:
        return None
    text, found = project.text(project.test), blocks(project)
    middle = found[len(found) // 2].start
    other = (
        project.test.replace("test_", "test_more_")
        if project.language == "python"
        else project.test.replace(".test.", "-more.test.").replace(".spec.", "-more.spec.")
    )
    return project.put(project.test, text[:middle].rstrip() + "\n").put(other, text[: found[0].start] + text[middle:])


def reflow(project: Project) -> Project | None:
    if project.language == "python":
        return project.edit(
            project.test,
            lambda text: re.sub(
                r"^( +)assert (\w+)\((.*)\) == (.*)$",
                r"\1assert (\n\1    \2(\n\1        \3,\n\1    )\n\1    == \4\n\1)",
                text.replace("'", '"'),
                flags=re.MULTILINE,
            ),
        )
    text = re.sub(
        r"^( +)expect\((\w+)\((.*?)\)\)\.",
        r"\1expect(\n\1  \2(\n\1    \3,\n\1  ),\n\1).",
        project.text(project.test).replace("'", '"'),
        flags=re.MULTILINE,
    )
    return project.put(project.test, text.replace(";\n", "\n"))


def rename_subject(project: Project) -> Project:
    name = first_function(project).name
    renamed_files = {
        path: re.sub(
            rf"\b{name}\b", f"compute_{name}" if project.language == "python" else f"compute{name.title()}", text
        )
        if path in {project.product, project.test}
        else text
        for path, text in project.files.items()
    }
    return replace(project, files=renamed_files)


def delete_feature(project: Project) -> Project:
    """Take out the last function, from product and tests."""
    last = project.domain.functions[-1].name
    rest = Domain(project.domain.module, project.domain.functions[:-1])
    shape = (
        rf"^def {last}\(.*\):\n(?:    .*\n)+\n*"
        if project.language == "python"
        else rf"^export function {last}\(.*\{{\n(?:  .*\n)+\}}\n\n?"
    )
    smaller = replace(project, domain=rest).edit(
        project.product, lambda text: re.sub(shape, "", text, flags=re.MULTILINE)
    )
    module = re.search(r"from (\S+) import (?=\w+, )", project.text(project.test))
    spec = re.search(r"'(\.[^']+)'", project.text(project.test))
    if project.language == "python":
        assert module is not None
        return smaller.put(project.test, python_tests(rest, project.style, module[1]))
    assert spec is not None
    return smaller.put(project.test, script_tests(rest, project.style, spec[1]))


def add_tests(project: Project) -> Project:
    function = first_function(project)
    if project.language == "python":
        indent, own = ("    ", "self") if project.style in {"unittest", "pytest-class"} else ("", "")
        call = f"{function.name}({', '.join(map(repr, function.samples[0].inputs))})"
        said = f"self.assertIsNotNone({call})" if project.style == "unittest" else f"assert {call}"
        return project.edit(
            project.test,
            lambda text: (
                text.rstrip("\n") + f"\n\n\n{indent}def test_{function.name}_again({own}):\n{indent}    {said}\n"
            ),
        )
    call = f"{function.name}({', '.join(map(written, function.samples[0].inputs))})"
    said = {"node": f"assert.ok({call});", "mocha": f"expect({call}).to.exist;"}.get(
        project.style, f"expect({call}).toBeDefined();"
    )
    return project.edit(
        project.test,
        lambda text: (
            text
            + f"\n{'test' if project.style in {'node', 'jest'} else 'it'}('{function.name} once more', () => {{\n  {said}\n}});\n"
        ),
    )


def more_product(project: Project) -> Project:
    new = Function("doubled", "value", "return value * 2", "return value * 2;", (Sample((21,), 42),))
    code = (
        f"\n\ndef {new.name}({new.params}):\n    if {new.params} is None:\n        return 0\n    {new.python}\n"
        if project.language == "python"
        else f"\nexport function {new.name}({new.params}) {{\n  {new.script}\n}}\n"
    )
    return project.edit(project.product, lambda text: text + code)


def rewrite_product(project: Project) -> Project:
    if project.language == "python":
        return project.edit(
            project.product,
            lambda text: re.sub(r"^    return (.*)$", r"    result = \1\n    return result", text, flags=re.MULTILINE),
        )
    return project.edit(
        project.product,
        lambda text: re.sub(r"^  return (.*);$", r"  const result = \1;\n  return result;", text, flags=re.MULTILINE),
    )


def constant(project: Project) -> Project | None:
    value = first_function(project).samples[0].output
    if project.language == "python":
        new = (
            project.text(project.test).replace(f"== {value!r}", "== WANTED", 1).replace(f", {value!r})", ", WANTED)", 1)
        )
        return project.put(
            project.test,
            re.sub(r"^(from .* import .*\n)", rf"\1\nWANTED = {value!r}\n", new, count=1, flags=re.MULTILINE),
        )
    new = re.sub(
        rf"(toBe|toEqual|equal)\({re.escape(written(value))}\)", r"\1(WANTED)", project.text(project.test), count=1
    )
    return (
        None
        if new == project.text(project.test)
        else project.put(
            project.test,
            re.sub(
                r"^((?:import|const) .*\n)+",
                lambda found: f"{found.group()}\nconst WANTED = {written(value)};\n",
                new,
                count=1,
                flags=re.MULTILINE,
            ),
        )
    )
