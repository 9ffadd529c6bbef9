"""What is special about the tests of each language: one row each, as patterns over names, marks and paths."""

import re
from dataclasses import dataclass, field, replace

NEVER = re.compile(r"(?!)")


def _(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How the tests of one language look."""

    language: str
    package: str
    """The Python package that holds the grammar."""
    endings: tuple[str, ...]
    function: str = "language"
    tests: re.Pattern[str] = NEVER
    """Names of functions that a runner takes for tests."""
    named_in: re.Pattern[str] = field(default=_(r""))
    """What a text must hold for names alone to make tests."""
    marks: re.Pattern[str] = NEVER
    """Annotations, attributes and comments that make a function a test."""
    blocks: re.Pattern[str] = NEVER
    """Calls that hold a test in a block."""
    groups: re.Pattern[str] = NEVER
    """Calls that hold several tests in a block."""
    asserts: re.Pattern[str] = field(default=_(r"^(?:assert|expect|verify|check|ensure|should|must)|^fail$"))
    """Names that assert when they are called."""
    told: re.Pattern[str] = NEVER
    """Methods that assert when they are called on a certain receiver, as `t.Errorf`."""
    found: re.Pattern[str] = field(default=_(r""))
    """Paths at which a runner with common settings looks for tests."""
    shut: re.Pattern[str] = NEVER
    """Lines that keep a whole file from being built or run."""


_XUNIT = r"^(?:[Aa]ssert|[Ee]xpect|[Vv]erif|[Cc]heck|[Ee]nsure|[Ss]hould|must|wont|refute)|^[Ff]ail(?:ure)?$"
_SCRIPT = Grammar(
    language="JavaScript", package="tree_sitter_javascript", endings=("js", "jsx", "mjs", "cjs"),
    blocks=_(r"^(?:x|f)?(?:it|test|specify|scenario)(?:\.[\w.]+)?$|^(?:t|tap|tt|st|QUnit|Deno|suite|bench)\.(?:test|add)(?:\.[\w.]+)?$|^(?:tape|ava)$"),
    groups=_(r"^(?:x|f)?(?:describe|context|suite)(?:\.[\w.]+)?$|^(?:QUnit)\.module(?:\.\w+)?$"),
    asserts=_(r"^(?:assert|expect|verify|check|ensure)(?!Type)|^should$|^fail$|^doesNotThrow|^deepEqual|^deepStrictEqual|^strictEqual"),
    told=_(
        r"^(?:assert|should|expect)\.\w+$|^(?:t|st|tt|tap|test|a|childTest|T)\.(?:is|isNot|not|equals?|notEqual|same|strictSame|notSame|deepEqual|deepEquals|notDeepEqual"
        r"|looseEqual|strictEqual|deepLooseEqual|ok|notOk|true|false|truthy|falsy|throws|throwsAsync|notThrows|notThrowsAsync|rejects|resolves"
        r"|error|ifError|match|notMatch|doesNotMatch|regex|notRegex|like|has|hasStrict|type|pass|fail|snapshot|matchSnapshot|assert|notok|ifErr|plan)$"
    ),
    found=_(
        r"(?:[._-](?:test|spec|tests|specs)|(?:^|/)(?:test|tests|spec))\.[cm]?[jt]sx?$|(?:^|/)test-[^/]+\.[cm]?js$"
        r"|(?:^|/)(?:__tests__|tests?|specs?|e2e|cypress)/(?:(?!fixtures|__mocks__|support|helpers).)*\.[cm]?[jt]sx?$"
    ),
)  # fmt: skip
_TYPED = replace(
    _SCRIPT,
    language="TypeScript",
    package="tree_sitter_typescript",
    function="language_typescript",
    endings=("ts", "mts", "cts"),
)
_GATED = r"(?m)^\s*(?://go:build|// \+build)\b.*$"

GRAMMARS: tuple[Grammar, ...] = (
    Grammar(
        language="Python", package="tree_sitter_python", endings=("py", "pyi"),
        tests=_(r"^test"), asserts=_(_XUNIT + r"|^raises$|^warns$|^pytest_raises$"),
        found=_(r"(?:^|/)(?:test[^/]*|[^/]*_test)\.py$"),
        shut=_(r"(?m)^(?:pytestmark\s*=.*\bskip\b.*|pytest\.skip\(.*|pytest\.importorskip\(.*|raise (?:unittest\.)?SkipTest.*|collect_ignore.*|__test__\s*=\s*False)$"),
    ),
    _SCRIPT,
    _TYPED,
    replace(_TYPED, function="language_tsx", endings=("tsx",)),
    Grammar(
        language="Go", package="tree_sitter_go", endings=("go",),
        tests=_(r"^(?:Test|Fuzz|Example|Benchmark)(?![a-z])"), blocks=_(r"^\w+\.Run$|^(?:It|Specify|Entry)$"),
        groups=_(r"^(?:Describe|Context|When|DescribeTable)$"),
        asserts=_(r"^(?:assert|require|check|verify|expect|must|ensure|Expect|Ω|Eventually|Consistently|Assert|Require|Check|Verify|Must)|^Fail$|^panic$"),
        told=_(r"^(?:assert|require|must|assertions?)\.[A-Z]|^(?:t|tb|b|s|c|is|g|T|ts|suite|a|r)\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow|Equal|NoError|True|False|Nil|NotNil|Is|Equals|Assert|Check|NoErr)$"),
        found=_(r"_test\.go$"), shut=_(_GATED),
    ),
    Grammar(
        language="Rust", package="tree_sitter_rust", endings=("rs",),
        marks=_(r"#\s*\[\s*(?:[\w:\s]+::\s*)?(?:test|rstest|test_case|quickcheck|proptest|wasm_bindgen_test|bench|tokio_test|parameterized|test_log|apply|case)\b"),
        asserts=_(r"^(?:assert|debug_assert|prop_assert|check|verify|ensure|panic|unreachable|expect_|should|must_|insta|matches)(?!\w*_hash)|^quickcheck$|^round_?trip"),
        found=_(r"\.rs$"), shut=_(r"(?m)^\s*#!\[cfg\(.*\)\].*$"),
    ),
    Grammar(
        language="Java", package="tree_sitter_java", endings=("java",),
        tests=_(r"^test[A-Z_0-9]"), named_in=_(r"extends\s+\w*TestCase\b|:\s*\w*TestCase\("), marks=_(r"@\s*(?:Parameterized|Repeated)?(?:Test|TestFactory|Theory|TestTemplate|Property)\b"),
        asserts=_(_XUNIT + r"|^then$"), found=_(r"(?:^|/)(?:Test[^/]*|[^/]*(?:Tests?|TestCase|IT|Spec|Suite))\.java$"),
    ),
    Grammar(
        language="Kotlin", package="tree_sitter_kotlin", endings=("kt", "kts"),
        tests=_(r"^test[A-Z_0-9]"), named_in=_(r"extends\s+\w*TestCase\b|:\s*\w*TestCase\("), marks=_(r"@\s*(?:Parameterized|Repeated)?(?:Test|TestFactory|Theory)\b"),
        blocks=_(r"^x?(?:it|test|should|expect|scenario|then|Then|feature)$|^['\"].*['\"]$"),
        groups=_(r"^x?(?:describe|context|given|Given|when|When|And)$"),
        asserts=_(_XUNIT + r"|^then$"), found=_(r"(?:^|/)(?:Test[^/]*|[^/]*(?:Tests?|TestCase|IT|Specs?|Suite))\.kt$"),
    ),
    Grammar(
        language="Ruby", package="tree_sitter_ruby", endings=("rb",),
        tests=_(r"^test_"), blocks=_(r"^x?f?(?:it|specify|test|should|scenario|example|its)$"),
        groups=_(r"^(?:RSpec\.)?[xf]?(?:describe|context|feature|shared_examples\w*|should_context)$"),
        asserts=_(_XUNIT + r"|^is_expected$|^flunk$|^must_|^wont_|^raise_error$|^value$|^_$"),
        found=_(r"(?:_(?:test|spec)|(?:^|/)(?:test|tc|ts)_[^/]+|(?:^|/)(?:test|spec)/[^/]*)\.rb$|(?:^|/)test_\w+/[^/]+\.rb$"),
    ),
    Grammar(
        language="C#", package="tree_sitter_c_sharp", endings=("cs",),
        marks=_(r"\[\s*(?:\w+\s*,\s*)*(?:\w+\s*\.\s*)*(?:\w*Fact|\w*Theory|Test|TestCase\w*|TestMethod|DataTestMethod|Property|Benchmark)(?:Attribute)?\b"),
        asserts=_(_XUNIT + r"|^(?:Received|DidNotReceive)$"), found=_(r"\.cs$"),
    ),
    Grammar(
        language="PHP", package="tree_sitter_php", function="language_php", endings=("php", "phpt"),
        tests=_(r"^test"), marks=_(r"@test\b|#\s*\[.*\bTest\b"), blocks=_(r"^(?:it|test)$"), groups=_(r"^describe$"),
        asserts=_(_XUNIT + r"|^(?:throwException|seeIn|see|dontSee)"), found=_(r"(?:Test|TestCase|Spec|Cest|Cept)\.php$|(?:^|/)tests?/.*\.php$"),
    ),
    Grammar(
        language="C++", package="tree_sitter_cpp", endings=("cc", "cpp", "cxx", "c", "h", "hpp", "hh", "hxx", "mm"),
        tests=_(r"^(?:TYPED_|CPPUNIT_|QT)?TEST(?:_\w+)?\b|^BOOST_\w*TEST_\w+|^SCENARIO|^TEMPLATE_\w*TEST\w*|^(?:\w+::)?[Tt]est\w*|^FUZZ_TEST|^START_TEST"),
        blocks=_(r"^(?:TEST_CASE\w*|SECTION|SUBCASE|SCENARIO|GIVEN|WHEN|THEN|AND_WHEN|AND_THEN|DYNAMIC_SECTION|TEMPLATE_\w*TEST\w*|TEST|START_TEST|METHOD_AS_TEST_CASE|BOOST_\w*TEST_CASE\w*|IUTEST\w*)$"),
        groups=_(r"^(?:TEST_SUITE|describe|BOOST_AUTO_TEST_SUITE)$"),
        asserts=_(r"^(?:ASSERT|EXPECT|REQUIRE|CHECK|VERIFY|BOOST_(?:CHECK|REQUIRE|TEST|WARN|ERROR|FAIL)|CPPUNIT_(?:ASSERT|FAIL)|QVERIFY|QCOMPARE|FAIL|ADD_FAILURE|SUCCEED|assert|expect|check|verify|ck_assert|static_assert|STATIC_REQUIRE|TEST_ASSERT|TEST_CHECK|g_assert|abort|INSTANTIATE_TEST|INSTANTIATE_TYPED|STATIC_CHECK)|_(?:ASSERT|CHECK|EXPECT)(?:_|$)"),
        found=_(r""),
    ),
    Grammar(
        language="Swift", package="tree_sitter_swift", endings=("swift",),
        tests=_(r"^test(?![a-z])"), marks=_(r"@\s*Test\b"), blocks=_(r"^x?f?it$"), groups=_(r"^x?f?(?:describe|context)$"),
        asserts=_(r"^(?:XCTAssert|XCTFail|XCTUnwrap|XCTExpect|assert|expect|require|verify|check|precondition|wait|fulfillment|should)|^Issue$"),
        found=_(r"\.swift$"), shut=_(r"(?m)^\s*#if\b.*$"),
    ),
    Grammar(
        language="Elixir", package="tree_sitter_elixir", endings=("exs", "ex"),
        blocks=_(r"^(?:test|property|feature|doctest|scenario)$"), groups=_(r"^(?:describe|defmodule)$"),
        asserts=_(r"^(?:assert|refute|flunk|check_all|expect|verify|catch_error|catch_throw|catch_exit|catch_assertion|doctest)"),
        found=_(r"_test\.exs$"), shut=_(r"(?m)^\s*(?:@moduletag\b.*\bskip.*|ExUnit\.configure\b.*exclude.*)$"),
    ),
)  # fmt: skip

_BY_ENDING = {ending: grammar for grammar in GRAMMARS for ending in grammar.endings}


def grammar_of(path: str) -> Grammar | None:
    """Give the grammar of a path by its ending."""
    return _BY_ENDING.get(path.rpartition(".")[2].lower()) if "." in path else None


SKIP_MARK = _(
    r"(?i)\bskip\w*|\bx?ignored?(?:test|if|unless)?\b|\bdisabled\w*|\bxfail\b|expected_?failure|\bpending\b|@\s*tag\s*:?\s*\(?\s*:?(?:skip|pending|exclude)"
    r"|\benabled(?:on|if|for)\w*|\bmanual(?:test)?\b|\brequires?\w*\b(?=.*\bTest)|\bexplicit\b|\bbroken\b|\btodo\b|\bnot_?run\b|__test__|cfg_attr|\bcfg\s*\((?!\s*test\s*\))"
)
"""Marks with which a test does not run, or need not pass."""
SKIP_CONDITION = _(
    r"(?i)skip_?(?:if|unless|on|test_?if)|(?:enabled|disabled)(?:on|if|for)\w|cfg_attr|\bcfg\s*\(\s*(?!any\s*\(\s*\)|FALSE)|\bcondition|\bif\s*:|requires?|platform|ignored?_?if|raises\s*=|strict|xfail\s*\(\s*(?!reason|run\b)\w"
)
SKIP_BLOCK = _(
    r"^x(?:it|test|specify|describe|context|scenario|should)$|\.(?:skip|todo|fixme|failing|fails|skipIf|runIf|skipTest)\b|^(?:skip|todo|pending)$"
)
SKIP_OPTION = _(
    r"[:\s(,]\s*:(?:skip|pending|disabled|broken)\b|\b(?:skip|pending|todo|ignore)\s*(?::|=>)\s*(?!\s*(?:false|nil|null)\b)|\[\.\]|\[!(?:mayfail|shouldfail|hide)|\[\.\w*\]|\*\s*doctest\s*::\s*skip"
)
SKIP_CALL = _(
    r"^(?:t|tb|b|s|T|suite|self|this|\$this|test|it|ctx|context|pytest|unittest|Assert|Assume|Assumptions|env|TestContext)\.?(?:Skip|Skipf|SkipNow|skip|skipTest|markTestSkipped|markTestIncomplete|Ignore|Inconclusive|pending|assumeTrue|assumeFalse|assumeThat|xfail|importorskip)$"
    r"|^(?:skip|skip_test|pending|omit|pend|markTestSkipped|markTestIncomplete|XCTSkip\w*|XCTExpectFailure|withKnownIssue|GTEST_SKIP\w*|SKIP|SkipTest|QSKIP|BOOST_TEST_DONT|assumeTrue|assumeFalse|assumeThat|assume_true|TEST_IGNORE\w*|SkipException|IgnoreException)$"
)
"""Calls that end a test without a verdict."""
ALWAYS_CONDITIONAL = _(r"If$|Unless$|[Aa]ssum|importorskip")
FOCUS = _(
    r"^f(?:it|describe|context|specify|example)$|\.only\b|\bfocus\s*(?::|=>)\s*true|[\s(,]:focus\b|\bfocused\b|@FocusTest"
)
RETRY = _(r"(?i)\bflaky\b|\bretry\w*\b|\bretries\b|\brerun\w*|RetryingTest|max_runs")
