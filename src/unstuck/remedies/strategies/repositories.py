"""Ways out of a repository in an awkward state, missing packages and missing settings."""

from unstuck.remedies.situation import Situation
from unstuck.remedies.step import REMEDY, Expects, Recipe, Remove, Shell, Step
from unstuck.remedies.strategies.commands import pip_risk, project_python

STALE_SECONDS = 2.0
SNAPSHOT = """
index=$(mktemp) && cp "$(git rev-parse --git-path index)" "$index" && GIT_INDEX_FILE=$index git add -A &&
tree=$(GIT_INDEX_FILE=$index git write-tree) &&
kept=$(git -c user.name=unstuck -c user.email=unstuck@localhost commit-tree "$tree" -p HEAD -m "Kept before a remedy") &&
git update-ref "refs/unstuck/remedies/$(date +%s)" "$kept"; code=$?; rm -f -- "$index"; exit "$code"
"""
"""Keeps all files, conflicts and untracked ones included, under a ref."""
HALF_DONE = "MERGE_HEAD MERGE_MSG MERGE_MODE AUTO_MERGE CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD sequencer rebase-merge rebase-apply"
KEEP_STATE = f"""
cd "$(git rev-parse --git-dir)" && rm -rf unstuck-kept && mkdir unstuck-kept || exit 1
for one in {HALF_DONE} HEAD index; do test ! -e "$one" || cp -a -- "$one" unstuck-kept/ || exit 1; done
"""
RESTORE_STATE = """
top=$(git rev-parse --show-toplevel) && kept=$(git for-each-ref --sort=-refname --count=1 --format='%(refname)' refs/unstuck/remedies) &&
cd "$(git rev-parse --absolute-git-dir)" && cp -a -- unstuck-kept/. . && rm -rf unstuck-kept &&
git -C "$top" restore --source="$kept" --worktree -- ':/'
"""
"""A half-done operation is its files in git's own folder, and the work tree."""
WITH_ENV = 'set -a; . "./$1"; set +a; exec "${@:2}"'
IDENTITY = {
    "GIT_AUTHOR_NAME": "unstuck",
    "GIT_AUTHOR_EMAIL": "unstuck@localhost",
    "GIT_COMMITTER_NAME": "unstuck",
    "GIT_COMMITTER_EMAIL": "unstuck@localhost",
}
ENV_FILES = (".env", ".env.local", ".env.development")


def remove_stale_lock(s: Situation) -> Recipe | str:
    """Remove a lock that nobody holds any more, and only inside the workspace."""
    lock = s.around.lock
    if lock is None or not lock.exists:
        return "no lock file is named that exists"
    if not lock.inside:
        return f"{lock.path} is outside of the workspace"
    if lock.held:
        return f"{lock.path} may still be in use"
    if lock.age < STALE_SECONDS:
        return f"{lock.path} is only {lock.age:.1f} seconds old"
    step = Step(
        action=f"Remove {lock.path}, which nobody holds",
        deed=Remove(paths=(lock.path,)),
        expected="It is gone",
        expects=Expects(gone=(lock.path,)),
    )
    return Recipe(
        steps=(step, s.again("Call it again, now that the lock is gone")) if s.call.line or s.call.tool else (step,)
    )


def conclude_merge(s: Situation) -> Recipe | str:
    """Commit a merge whose conflicts are all resolved."""
    git = s.around.git
    if git is None or git.operation != "merge":
        return "no merge is half done"
    if git.unmerged:
        return f"{git.unmerged[0]} is still in conflict"
    commit = Step(
        action="Commit the merge, which has no conflicts left",
        deed=Shell(argv=("git", "commit", "--no-edit")),
        expected="The merge is a commit",
        risk="caution",
    )
    return Recipe(steps=(commit, s.again("Call it again, now that the merge is done")), requires=("git",))


def abort_half_done(s: Situation) -> Recipe | str:
    """Go back to before the half-done operation; all changes are kept under a ref first."""
    git = s.around.git
    if git is None or not git.operation:
        return "nothing is half done"
    state = Step(
        action=f"Keep the state of the {git.operation}",
        deed=Shell(argv=("bash", "-c", KEEP_STATE)),
        expected="It can be put back",
    )
    abort = Step(
        action=f"Abort the {git.operation}",
        deed=Shell(argv=("git", git.operation, "--abort")),
        expected=f"No {git.operation} is half done",
        risk="caution",
        back=Shell(argv=("bash", "-c", RESTORE_STATE)),
    )
    again = s.again(f"Call it again, now that no {git.operation} is half done")
    return Recipe(steps=(_kept(), state, abort, again), requires=("git",))


def put_changes_aside(s: Situation) -> Recipe | str:
    """Stash what stands in the way; it can be taken back with `git stash pop`."""
    git = s.around.git
    if git is None or git.operation or not git.changed:
        return "no uncommitted changes stand in the way"
    stash = Step(
        action="Put the changes aside (back with `git stash pop`)",
        deed=Shell(argv=("git", "stash", "push", "--include-untracked")),
        expected="The changes are in the stash",
        risk="caution",
        back=Shell(argv=("git", "stash", "pop", "--index")),
    )
    return Recipe(steps=(stash, s.again("Call it again, now that nothing stands in the way")), requires=("git",))


def install_from_local_folder(s: Situation) -> Recipe | str:
    """Install the package from a folder of the project."""
    found, package = s.around.local_packages, s.names.get("package", "")
    if s.preferences.never_install:
        return "the configuration says `never_install`"
    if not found:
        return f"no folder of the project holds {package or 'it'}"
    first = found[0]
    again = s.again("Call it again, now that the package is there")
    install: tuple[str, ...]
    if first.endswith((".whl", ".tar.gz")):
        folder = first.rpartition("/")[0] or "."
        install = (project_python(s), "-m", "pip", "install", "--no-index", "--find-links", folder, package)
    elif first.endswith(".tgz"):
        install = ("npm", "install", "--no-save", "--offline", f"./{first}")
    else:
        return _on_the_path(s, first)
    step = Step(
        action=f"Install {package} from {first}",
        deed=Shell(argv=install, timeout=600.0),
        expected="It ends with exit code 0",
        risk=pip_risk(install[0]) if "pip" in install else "caution",
    )
    return Recipe(steps=(step, again), requires=(install[0],))


def install_declared_dependencies(s: Situation) -> Recipe | str:
    """Install what the project declares, by its lock file."""
    if s.preferences.never_install:
        return "the configuration says `never_install`"
    node = (s.call.words or ("",))[0].rsplit("/", 1)[-1] in {
        "node",
        "npm",
        "npx",
        "tsx",
        "ts-node",
    } or "Cannot find module" in s.text
    for file, words in s.table("lockfiles").items():
        foreign = node != (words[0] in {"npm", "pnpm", "yarn", "bun"}) and file != "requirements.txt"
        if file in s.around.root_names and s.around.has(words[0]) and not foreign:
            argv = (project_python(s), *words[1:]) if words[0] == "python3" else tuple(words)
            step = Step(
                action=f"Install what {file} declares",
                deed=Shell(argv=argv, timeout=1800.0),
                expected="It ends with exit code 0",
                risk=pip_risk(argv[0]) if words[0] == "python3" else "caution",
            )
            return Recipe(steps=(step, s.again("Call it again, now that the packages are there")), requires=(words[0],))
    return "no lock file says how the dependencies are installed"


def load_env_file(s: Situation) -> Recipe | str:
    """Set the variables of the project's own file."""
    file = next((name for name in ENV_FILES if name in s.around.root_names), "")
    words = s.call_words()
    if not file or words is None or not s.names.get("env"):
        return "no file of the project sets it"
    step = Step(
        action=f"Call it again with the variables of {file}",
        deed=Shell(argv=("bash", "-c", WITH_ENV, REMEDY, file, *words)),
        expected="The call succeeds",
        risk="caution",
        again=True,
    )
    return Recipe(steps=(step,), requires=("bash",))


def use_own_identity(s: Situation) -> Recipe | str:
    """Commit in the supervisor's name where git knows nobody."""
    if "tell me who you are" not in s.text.lower() and "identity unknown" not in s.text.lower():
        return "git knows who commits"
    return Recipe(steps=(s.again("Commit in the supervisor's name", env=IDENTITY),), requires=("git",))


def _kept() -> Step:
    return Step(
        action="Keep all changes under refs/unstuck/remedies",
        deed=Shell(argv=("bash", "-c", SNAPSHOT)),
        expected="The ref exists",
    )


def _on_the_path(s: Situation, module: str) -> Recipe | str:
    """Let the interpreter find a module that lies in the project."""
    if not s.is_command:
        return "the call is not a command"
    folder = module.rpartition("/")[0] or "."
    name = "NODE_PATH" if module.endswith((".js", "node_modules")) or "Cannot find module" in s.text else "PYTHONPATH"
    return Recipe(steps=(s.again(f"Call it again with {folder} on {name}", env={name: folder}),))
