"""Classify shell commands: their purpose, exit codes that are answers, and effects on the world."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal, cast

from unstuck.toolchain.shell import ENDS, QUOTED, programs

Role = Literal["test", "lint", "types", "format", "build", "install", ""]
"""The purpose of a command. It decides the name of a finding that does not name itself."""

CHECK_ROLES = frozenset({"test", "lint", "types", "format", "build"})
"""A program with one of these roles may run because a sentence says that it passes."""
MOST_NESTED_SHELLS = 3
_CHECK_SCRIPT = re.compile(
    r"(?:ba|da|z)?sh\s+[\w./-]*(?:test|check|lint|verify|spec)[\w.-]*\.sh\b|[\w./-]*(?:test|check|lint|verify)[\w-]*\.sh\b"
)
"""A script of the project whose name says that it is a check."""
_SINGLE_QUOTED = re.compile(r"'[^']*'")
_SUBSTITUTED = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
"""Commands whose output the shell puts into the line."""
_INNER_SHELL = re.compile(
    r"^(?:(?:ba|da|z|k|fi)?sh(?:\s+-\w+)*?\s+-\w*c|eval)\s+(?:'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|(\S.*))", re.DOTALL
)
"""A command that another shell runs."""


def role(command: str, tool: str = "", check: str | None = None) -> Role:
    """Return the purpose of a command. For a check it is the kind of the check."""
    if check in CHECK_ROLES:
        return cast("Role", check)
    roles = (role_of(part) for part in reversed((tool, *programs(command))))
    return next((part_role for part_role in roles if part_role), "")


def role_of(part: str) -> Role:
    """Return the purpose of a simple command: by its arguments for programs with many uses, else by its name."""
    if not part or part.split(maxsplit=1)[0] in FILE_PROGRAMS:
        return ""
    for use, pattern in USES:
        if re.search(pattern, part):
            return use
    name = re.sub(r"\.(?:exe|cmd|bat|phar|sh)$", "", part.split(maxsplit=1)[0])
    bare = re.sub(r"-?[\d.]+$", "", name)
    by_name = _roles_by_name().get(name) or _roles_by_name().get(bare) or ""
    return by_name or ("lint" if re.search(r"lint|validat|audit|secrets", name) else "")


@cache
def _roles_by_name() -> Mapping[str, Role]:
    roles: dict[str, Role] = {}
    for program_role, names in PROGRAMS.items():
        for name in names.split():
            roles.setdefault(name, program_role)
    return roles


def is_answer(command: str, tool: str, exit_code: int | None) -> bool:
    """Return whether the exit code answers the question that the last command asks."""
    parts = programs(command)
    last = next((part for part in reversed(parts) if part not in {"true", ":"}), tool)
    if inner := _INNER_SHELL.match(last):
        last = next(reversed(programs("".join(filter(None, inner.groups())))), last)
    return any(exit_code in codes and re.search(pattern, last) for pattern, codes in ANSWERS)


def is_system_command(command: str) -> bool:
    """Return whether the last program of a command belongs to the machine, and not to the project."""
    return any(part.split(maxsplit=1)[0] in SYSTEM_PROGRAMS for part in programs(command)[-1:])


def runs_other_checks(command: str) -> bool:
    """Return whether a command may run checks of any kind: `make check`, `tox`, `pre-commit`."""
    return any(part.split()[0] in PROGRAMS_WITH_SCRIPTS for part in programs(command) if role_of(part))


def only_checks(command: str) -> bool:
    """Return whether every program of a command is a known checker or only reads."""
    parts = [part for part in programs(command) if part.split(" ", 1)[0] not in SHELL_PROGRAMS]
    return bool(parts) and not effect(command) and all(map(_checks_or_reads, parts))


def _checks_or_reads(part: str) -> bool:
    program = part.split(" ", 1)[0]
    return program in READING_PROGRAMS or role_of(part) in CHECK_ROLES or _CHECK_SCRIPT.match(part) is not None


def effect(command: str) -> str:
    """Return what a command does to the world, as far as its text shows, or an empty string."""
    return next(_effects(command, MOST_NESTED_SHELLS), "")


def _effects(command: str, depth: int) -> Iterator[str]:
    """Yield the effects of every simple command, and of the commands that inner shells run."""
    parts = (*programs(command), *(part.strip().lstrip("\\") for part in ENDS.split(command)))
    for part in parts:
        acting = _acting_text(part)
        # What echo prints is no command; what a database client gets as an argument is one.
        unquoted = QUOTED.sub("''", acting) if re.match(r"(?:echo|printf)\b", acting) else acting
        for name, pattern in _effect_patterns():
            if pattern.search(acting) and pattern.search(unquoted):
                yield name
    inner = [*_SUBSTITUTED.findall(_SINGLE_QUOTED.sub("", command))]
    for part in parts:
        inner += _INNER_SHELL.findall(part)
    for groups in inner if depth else ():
        yield from _effects("".join(groups).replace('\\"', '"'), depth - 1)


@cache
def _effect_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern)) for name, pattern in EFFECTS)


def _acting_text(part: str) -> str:
    """Return the text of a simple command that can act: for a program that only reads, its redirection."""
    if part.split(" ", 1)[0] not in READING_PROGRAMS:
        return part
    return part[part.index(">") :] if ">" in part else ""


# --- tables -----------------------------------------------------------------------------------------------

# fmt: off
FILE_PROGRAMS = frozenset(
    ["awk", "cat", "cd", "chmod", "chown", "cmp", "cp", "curl", "diff", "echo", "egrep", "export", "false", "fgrep", "find", "git", "grep", "head", "less", "ln", "ls", "mkdir", "more", "mv", "printf", "pwd", "rg", "rm", "rmdir", "rsync", "scp", "sed", "sleep", "sort", "source", "ssh", "tail", "tee", "test", "touch", "true", "wc", "wget", ".", "[", "[["]
)
"""Programs whose arguments say nothing about the purpose of a command."""
READING_PROGRAMS = frozenset(["test", "[", "[[", "!", "grep", "egrep", "fgrep", "rg", "diff", "cmp", "ls", "cat", "wc", "jq", "stat", "head", "tail"])
"""Programs that only look at files."""
SHELL_PROGRAMS = frozenset(["cd", "echo", "true", ":", "set", "export", "pwd"])
"""Programs that stand beside checks."""
PROGRAMS_WITH_SCRIPTS = frozenset(["make", "just", "task", "npm", "yarn", "pnpm", "bun", "tox", "nox", "nx", "turbo", "rake", "gradle", "gradlew", "mvn", "mvnw", "pre-commit"])
"""Programs that run others, which their command line does not show."""
SYSTEM_PROGRAMS = frozenset(
    ["7z", "7za", "apache2", "apk", "apt", "apt-get", "aptitude", "ar", "arp", "at", "atq", "aws", "awk", "az", "b2sum", "base64", "basename", "bc", "blkid", "brew", "bzip2", "bzr", "cal", "chattr", "chgrp", "chmod", "chown", "chroot", "chsh", "cksum", "cmp", "column", "comm", "consul", "convert", "cp", "cpio", "crontab", "csplit", "cut", "cvs", "date", "dc", "dd", "df", "diff", "diff3", "dig", "dmesg", "dnf", "docker", "dot", "dpkg", "dpkg-deb", "du", "ed", "egrep", "env", "expand", "expr", "factor", "fdisk", "ffmpeg", "ffprobe", "fgrep", "file", "find", "flatpak", "flock", "fold", "fossil", "free", "fuser", "gawk", "gcloud", "gdb", "getent", "getfacl", "git", "gnuplot", "gpg", "gpg2", "grep", "groupadd", "gunzip", "gzip", "haproxy", "head", "helm", "hexdump", "hg", "host", "hostname", "hostnamectl", "httpd", "iconv", "id", "identify", "ifconfig", "install", "ip", "iptables", "jj", "join", "journalctl", "kill", "killall", "kubectl", "last", "ld", "ldconfig", "ldd", "lftp", "ln", "locale", "logger", "login", "logrotate", "losetup", "ls", "lsblk", "lsof", "ltrace", "m4", "magick", "man", "md5sum", "minikube", "mkdir", "mkfifo", "mkfs", "mknod", "mktemp", "modprobe", "mongo", "mongosh", "mount", "mv", "mysql", "mysqladmin", "mysqldump", "nc", "ncat", "netstat", "nginx", "nice", "nl", "nmap", "nohup", "nslookup", "objdump", "od", "openssl", "pacman", "parallel", "passwd", "paste", "patch", "pg_dump", "pg_restore", "pgrep", "ping", "pkg-config", "pkill", "podman", "pr", "ps", "psql", "readlink", "realpath", "redis-cli", "rename", "renice", "rev", "rm", "rmdir", "rpm", "rpmspec", "rsync", "runuser", "scp", "screen", "sdiff", "sed", "seq", "service", "setfacl", "setsid", "sftp", "sha1sum", "sha256sum", "sha512sum", "shred", "shuf", "sleep", "snap", "socat", "sort", "sox", "split", "sqlite3", "ss", "ssh", "ssh-add", "ssh-keygen", "stat", "strace", "strings", "strip", "su", "sudo", "sum", "svn", "swapon", "sync", "sysctl", "systemctl", "tac", "tail", "tar", "tc", "tcpdump", "tee", "telnet", "terraform", "timedatectl", "timeout", "tmux", "tofu", "touch", "tput", "tr", "traceroute", "truncate", "tsort", "umount", "uname", "unexpand", "uniq", "unlink", "unrar", "unshare", "unzip", "useradd", "usermod", "vault", "vmstat", "watch", "wc", "whereis", "which", "xargs", "xsltproc", "xxd", "xz", "yes", "yum", "zcat", "zip", "zstd", "zypper"]
)
"""Programs of the machine, whose messages have a vocabulary of their own."""

USES: tuple[tuple[Role, str], ...] = (
    ("format", r"^(?:ruff|cargo|mix|dart|dotnet|terraform|tofu|zig|deno|biome|buf|go|hcl|packer|forge|cue|rome)\s+(?:fmt|format)\b"),
    ("format", r"^(?:npm|yarn|pnpm|bun|make|poe|hatch|task|nx|gradlew?|mvnw?|just)\s.*(?:fmt|format|spotless|prettier)"),
    ("types", r"^(?:ty|astro|glint|deno|gleam)\s+check\b|^mix\s+dialyzer\b|^tsc\b.*--no[eE]mit\b"),
    ("types", r"^(?:npm|yarn|pnpm|bun|make|poe|task|hatch|just)\s.*(?:type-?check|\btypes\b|\btsc\b)"),
    ("lint", r"^(?:tox|nox)\s.*-[es][\s=]*[\w,-]*(?:lint|style|flake8|ruff|pre-commit)"),
    ("types", r"^(?:tox|nox)\s.*-[es][\s=]*[\w,-]*(?:types?|typing|typecheck|mypy|pyright)(?![\w-])"),
    ("lint", r"^(?:biome|rome)\s+(?:check|ci|lint)\b|^cargo\s+(?:\+\S+\s+)?(?:clippy|deny|audit|machete|udeps)\b|^go\s+vet\b"),
    ("lint", r"^(?:npm|yarn|pnpm)\s+audit\b|^mix\s+credo\b|^(?:dart|flutter)\s+analyze\b|^\S+\s+(?:run\s+)?[\w:]*lint(?=[\s:]|$)"),
    ("lint", r"^(?:mvnw?|gradlew?)\s.*(?:checkstyle|pmd|spotbugs|detekt|ktlint|lint)|^(?:grunt|gulp|nx|lerna|turbo|moon|rush|inv|invoke)\s.*(?:lint|[ej]shint|jscs)"),
    ("test", r"^\S+\s+(?:-\S+\s+)*(?:run\s+|exec\s+)?(?:test|tests|spec|eunit|ct|runtest|doctest|vitest|jest|e2e)(?=[\s:]|$)"),
    ("test", r"^(?:mvnw?|gradlew?|sbt|lein|bazel|bazelisk|xcodebuild|dotnet|swift|mill|ant)\s.*\b(?:\w*[tT]est\w*|verify|check)\b"),
    ("test", r"^(?:npm|yarn|pnpm|bun|rake|make|just|task|grunt|gulp|nx|lerna|turbo|moon|rush|inv|invoke)\s.*\b(?:test\S*|spec)\b|^make\s+check\b|^(?:(?:ba|da|z|k)?sh\s+(?:-\w+\s+)*)?(?:\S*/)?(?:run[_-]?tests?|tests?)\.(?:sh|py)\b"),
    ("install", r"^(?:terraform|tofu|terragrunt)\s+init\b|^helm\s+(?:dep\w*|repo)\b|^(?:pip[\d.]*|uv|poetry|pdm|conda|mamba|npm|pnpm|yarn|bun|gem|bundle|composer|cargo|go|apt|apt-get|dnf|yum|apk|pacman|zypper|brew|nuget|dotnet|cpan|cpanm|luarocks|mix|rebar3|cabal|stack|opam|nimble|shards|pub|flutter|dart|conan|pod|vcpkg|carthage|bower|pipenv|hatch|pixi|micromamba|asdf|mise|rustup|tlmgr|pipx|jspm|deno|snap|flatpak|choco|winget|scoop)\s+(?:\S+\s+)?(?:install|i|ci|add|sync|get|restore|require|update|upgrade|download|fetch|deps\.get|mod|lock|create|search|-S)\b|^(?:cpanm|cpan)\s+\w"),
    ("build", r"^(?:dotnet|swift|zig|mix|cargo|go|flutter|dart|docker|podman|nix|npm|yarn|pnpm|bun|gleam|forge|hugo|stack|cabal)\s+(?:run\s+)?(?:build|publish|compile|run|check|c|install)\b|^node\s+--check\b|^(?:ruby|perl)\s+-\w*c\b|^php\s+-l\b|^(?:ba|z|da)?sh\s+-n\b"),
)
"""Programs with many uses: the first pattern that matches a simple command names its purpose."""

PROGRAMS: Mapping[Role, str] = {
    "format": """
black isort prettier prettierd yapf autopep8 gofmt gofumpt goimports rustfmt clang-format dprint shfmt nixfmt
alejandra stylua scalafmt google-java-format swiftformat ocamlformat ormolu fourmolu brittany taplo pint
php-cs-fixer ktfmt docformatter blue standardrb djhtml cmake-format gersemi mdformat buildifier treefmt oxfmt
nimpretty fantomas csharpier elm-format perltidy fprettify findent cljfmt zprint raco-fmt tex-fmt latexindent
sql-formatter pg_format sqlfmt xmlformat jsonnetfmt hclfmt purs-tidy stylish-haskell erlfmt efmt dfmt astyle
uncrustify indent ruff-format gci golines pyink usort ssort js-beautify rustywind sqlformat beautysh fish_indent
nixpkgs-fmt palantir-java-format cljstyle ocp-indent dartfmt yamlfmt yamlfix toml-sort rufo rubyfmt phpcbf
blade-formatter lua-format topiary swift-format gofumports keep-sorted
""",
    "types": """
mypy dmypy pyright basedpyright pyre pytype pyrefly vue-tsc flow phpstan psalm phan srb steep dialyzer tsd
svelte-check zuban sorbet ty tsgo attw publint typecov type-coverage luau-lsp eqwalizer elp pyre-check stubtest
rbs flow-bin vtsls typeguard
""",
    "lint": """
flake8 ruff pycodestyle pydocstyle bandit shellcheck rubocop phpcs phpmd checkstyle pmd spotbugs detekt
staticcheck cppcheck clang-tidy codespell vale standard xo semgrep trivy tfsec checkov terrascan kube-score
conftest vulture radon xenon interrogate typos luacheck selene perlcritic mdl alex write-good pre-commit
lefthook reek brakeman errcheck gosec govulncheck revive spectral knip depcheck madge reuse gitleaks
detect-secrets proselint tidy doc8 rstcheck pip-audit safety refurb pyflakes prospector slither dockle polaris
deptry scalafix cspell misspell editorconfig-checker check-jsonschema htmlproofer lychee linkchecker cookstyle
jshint htmlhint djlint dotenv-linter check-manifest pyroma check-wheel-contents desloppify flawfinder infer
scan-build include-what-you-use iwyu cpd jscpd licensecheck licensee osv-scanner grype snyk npm-check
dependency-check retire kics tflint regula hadolint kubeconform kubeval kube-linter datree nilaway unparam
ineffassign gocyclo credo sobelow hlint stan cargo-deny cargo-audit cargo-machete luau-analyze ansible-lint
puppet-lint foodcritic xmllint jsonlint ajv pajv tidy5 vnu pa11y lighthouse textlint redpen rpmlint lintian
abidiff depcruise dependency-cruiser markdown-link-check yamale cz commitlint gitlint conform zizmor actionlint
spellcheck pyspelling codenarc infracost opa regal cfn-nag cfn_nag_scan eslint_d oxlint quick-lint-js tsqllint
sqruff htmllint remark pylama autoflake unimport dlint eradicate nbqa trufflehog shellharden checkbashisms
bashate kubesec pluto popeye dockerfilelint haml-lint slim-lint scss-lint sass-lint csslint erblint fasterer
flay flog bundler-audit bundle-audit rubycritic golint gocritic goconst nakedret deadcode dupl protolint
swiftlint periphery ktlint lintr elvis scalastyle weeder eastwood kibit clj-kondo splint cppclean cpplint oclint
fortitude dscanner sqlcheck squawk woke aspell hunspell linkinator blc muffet kubeaudit scorecard
license-checker addlicense audit-ci lockfile-lint syncpack manypkg sherif import-linter tach dpdm unimported
ts-prune size-limit bundlesize bundlewatch lhci es-check elm-review nixpkgs-lint statix deadnix vint
desktop-file-validate appstreamcli xmlstarlet jing html5validator bibtex-tidy pip-licenses
""",
    "test": """
pytest py.test unittest jest vitest mocha ava tap tape karma cypress playwright rspec minitest phpunit pest
paratest codecept behat ctest nextest nosetests nose2 tox nox behave cucumber cucumber-js bats busted prove
ginkgo gotestsum testcafe nightwatch wdio robot green ward hurl newman k6 jasmine qunit uvu c8 nyc trial stestr
doctest schemathesis test_runner zunit shellspec bashunit roundup cram lit inspec kitchen serverspec terratest
mutmut stryker cosmic-ray hypothesis locust gatling artillery japa lab intern web-test-runner wtr storybook-test
pa11y-ci backstop loki detox appium spock scalatest munit utest expecto xunit nunit mstest fuzz testinfra
molecule tavern gauge lettuce avocado subunit pytest-3 zope-testrunner radish pabot xdoctest zora brittle poku
testem codeceptjs protractor gotest richgo goconvey test-unit phpspec kahlan atoum infection ceedling kaocha
hspec luaunit yath shunit2 bash_unit sharness tush fishtape pester testthat testament goss dgoss
container-structure-test dredd kuttl chainsaw karate
""",
    "build": """
gcc g++ cc c++ c99 clang clang++ ld ld.lld mold ar as nasm make gmake cmake ninja samu meson rustc javac kotlinc
scalac scala-cli sbt mvn mvnw gradle gradlew ant mill groovyc msbuild csc fsc vbc swiftc xcodebuild ghc runghc
dune ocaml ocamlc ocamlopt ocamlfind webpack vite rollup rolldown esbuild parcel turbo next nuxt remix astro
gatsby ng tsc tsup swc babel rspack bazel bazelisk buck2 pants scons waf elixirc elixir erlc gfortran flang fpc
ldc2 dmd gdc crystal protoc buf flatc thrift capnp sass lessc postcss mkdocs sphinx-build jekyll eleventy zola
pdflatex xelatex lualatex latexmk tectonic typst elm purs spago idris2 agda lean lake coqc gnatmake gprbuild
iverilog verilator yosys ghdl nvcc hipcc emcc wasm-pack maturin build py_compile compileall cython nuitka
rpmbuild makepkg nix-build odin hare tinygo solc solcjs hardhat scarb nim tsx ts-node tailwindcss tailwind
handlebars pug stylus ejs hugo docusaurus vitepress svelte-kit quarto asciidoctor pandoc doxygen typedoc jsdoc
javadoc sphinx makeinfo rpmspec rpmbuild debuild dpkg-buildpackage snapcraft flatpak-builder cobc bison flex
yacc lex re2c antlr4 swig pyinstaller flit node-gyp unbuild ncc nexe browserify metro expo electron-builder
react-scripts vue-cli-service grunt gulp lein shadow-cljs ecj native-image jlink jpackage dub shards rebar3
gleam trunk ko please plz qmake moc uic xmake premake5 tup autoconf automake autoreconf aclocal autoheader
libtoolize configure bmake nmake mage openapi-generator swagger-codegen graphql-codegen sqlc quicktype dhall
jsonnet kustomize cue ytt mkosi guix pelican nikola hexo antora tex pdftex context bibtex biber makeindex dot
msgfmt glib-compile-schemas windres wasm-bindgen f2py cythonize ghci kotlinc-jvm aapt2 nextflow v vlang vala
valac guild gsc mcs
""",
}
"""Programs with one use; a name that stands twice belongs to the first."""

ANSWERS: tuple[tuple[str, tuple[int, ...]], ...] = (
    (r"^(?:[efz]?grep|rg|ag|ack|git\s+(?:\S+\s+)*grep)\b", (1,)),
    (r"^(?:hg|svn|jj|fossil|bzr)\s+(?:\S+\s+)*(?:grep|diff|incoming|outgoing)\b|^(?:diff|cmp|colordiff|zdiff|sdiff|wdiff|comm|dyff)\b", (1,)),
    (r"^git\s+(?:\S+\s+)*(?:diff|diff-index|diff-tree|diff-files)\b", (1,)),
    (r"^git\s+(?:\S+\s+)*(?:merge-base\s+--is-ancestor|rev-parse|show-ref|check-ignore|config|symbolic-ref)\b", (1,)),
    (r"^(?:test|\[\[?)(?:\s|$)", (1,)),
    (r"^(?:pgrep|pidof|pkill|which|whence|type|hash|command|expr|let|false|lsof|fuser|mountpoint|\(\()(?:\s|$)", (1,)),
    (r"^(?:head|less|more)\b|^[efz]?grep\s+(?:\S+\s+)*-\w*[qm]", (141,)),
    (r"^getent\b", (2,)),
    (r"^systemctl\s+(?:\S+\s+)*(?:is-active|is-enabled|is-failed|status)\b", (1, 3, 4)),
    (r"^(?:terraform|tofu)\s+plan\b.*-detailed-exitcode", (2,)),
    (r"^[jy]q\s(?:.*\s)?(?:-e|--exit-status)\b", (1, 4)),
    (r"^(?:npm|yarn|pnpm)\s+outdated\b|^tmux\s+has-session\b|^(?:brew|apt|snap|flatpak|pacman|dpkg|rpm)\s+(?:list|-Q|-q|-s)\b.*(?:-q|--quiet)|^set\s+-q\b|^(?:nc|ncat)\s.*-z\b", (1,)),
)
"""Exit codes that answer a question ("no match", "they differ") and are no failures."""

EFFECTS: tuple[tuple[str, str], ...] = (
    ("deletes", r"^(?:rm|rmdir|unlink|shred|truncate|dropdb|mkfs\S*|dd)\b|^git\s+(?:\S+\s+)*(?:clean|reset|checkout|restore|stash)\b|^find\b.*\s-(?:delete|exec\s+rm)\b"),
    ("deletes", r"^(?:docker|podman|kubectl|terraform|tofu|helm|aws|gcloud|az)\s.*\b(?:rm|rmi|prune|delete|destroy|uninstall|down)\b"),
    ("deletes", r"(?i)\bDROP\s+(?:TABLE|DATABASE|SCHEMA)\b|\bTRUNCATE\s+TABLE\b|\bDELETE\s+FROM\b"),
    ("deletes", r"\bshutil\.rmtree\b|\bos\.(?:remove|unlink|rmdir|removedirs)\b|\b(?:rm|unlink|rmdir)Sync\b|\bfs\.(?:rm|unlink|rmdir)\b|\bFileUtils\.rm"),
    ("deploys", r"(?i)(?:^|[\s:/_-])(?:deploy\w*|rollout|provision|migrate:prod\w*)\b|^(?:kubectl|terraform|tofu|pulumi)\s+(?:\S+\s+)*(?:apply|up|replace|scale)\b|^helm\s+(?:install|upgrade)\b|^(?:vercel|netlify|fly|flyctl|firebase|heroku|serverless|sls|cdk|ansible-playbook)\b"),
    ("pushes", r"^git\s+(?:\S+\s+)*(?:push|send-email)\b|^(?:docker|podman|helm)\s+(?:image\s+)?push\b|^(?:scp|rsync|sftp|ssh|ftp)\b|^(?:gh|glab)\s+(?:pr|release|repo|issue|workflow)\s+(?:create|merge|upload|delete|close|run|edit)\b"),
    ("publishes", r"(?i)(?:^|[\s:/_]|semantic-)(?:publish\w*|release)(?![\w.=-])|^twine\s+upload\b|^gem\s+push\b|^aws\s+s3\s+(?:cp|sync|mv)\b|^(?:curl|wget|http)\b.*\s(?:-X\s*(?:POST|PUT|DELETE|PATCH)|--request|-d|--data\S*|-F|--upload-file|-T)\b"),
    ("writes outside the repository", r"(?:>>?\s*|^(?:cp|mv|tee|mkdir|touch|ln|install|chmod|chown)\b.*\s)(?:/(?!dev/(?:null|stdout|stderr)\b|tmp\b)|~|\$HOME|\.\./)"),
    ("writes outside the repository", r"^(?:sudo|doas|systemctl|service|apt|apt-get|yum|dnf|brew|crontab|chown|useradd|kill|pkill|killall|reboot|shutdown)\b|^npm\s+(?:\S+\s+)*(?:-g|--global)\b"),
)
"""The first pattern that matches names the effect."""
# fmt: on
