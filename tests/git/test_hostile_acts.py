"""What hostile and clumsy agents do in their slots, and what of it reaches the user: nothing, or it is told.

Each act is a shell script run in a slot; `$U` is the user's checkout, `$R` the bare repository it pushes to.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.git.opening import workspace

from unstuck.git.git_command import Git
from unstuck.git.workspace import GitWorkspace
from unstuck.process.command import Command
from unstuck.process.sandbox import Sandbox, sandbox_problem, sandboxed

OWN: dict[str, str] = {
    # refs, stash, history
    "stash clear": "git stash clear",
    "stash everything": "echo x > a.txt; git stash -u; git stash drop",
    "delete a branch": "git branch -D side",
    "delete all branches": "git for-each-ref --format='%(refname)' | xargs -n1 git update-ref -d",
    "delete a tag": "git tag -d v1 light",
    "move a tag": "git tag -f v1 HEAD~1",
    "move the user's branch": "git update-ref refs/heads/main HEAD~1",
    "point HEAD elsewhere": "git symbolic-ref HEAD refs/heads/side",
    "point a branch at another": "git symbolic-ref refs/heads/main refs/heads/side",
    "create the run's branch": "git update-ref refs/heads/unstuck/r1 HEAD~1",
    "forget the snapshots": "git update-ref refs/unstuck/snapshots/r1/1 HEAD~1; git update-ref -d refs/unstuck/slots/w0/base",
    "expire all reflogs": "git reflog expire --expire=now --all",
    "collect garbage": "git gc --quiet --prune=now",
    "lose everything": "git stash clear; git branch -D side; git reflog expire --expire=now --all; git gc --prune=now",
    "prune objects": "git prune --expire=now; git prune-packed; git repack -a -d -q",
    "rewrite history": "git filter-branch -f --msg-filter 'echo rewritten' HEAD",
    "amend the base": "git commit --amend --allow-empty -m mine",
    "an orphan": "git checkout --orphan fresh; git rm -rfq .; git commit --allow-empty -qm fresh",
    "reset to the first commit": "git reset -q --hard HEAD~1; git clean -fdxq",
    "check out the user's branch": "git checkout -q -B main side",
    "a merge left half done": "git merge -q side; git checkout -q -b x; git merge other",
    "a rebase left half done": "git rebase side || true",
    "a bisect": "git bisect start; git bisect bad; git bisect good HEAD~1",
    "notes": "git notes add -m mine HEAD",
    # objects
    "replace refs": "git replace HEAD HEAD~1; git replace HEAD:a.txt HEAD:src/b.py",
    "grafts": "git rev-parse HEAD > .git/info/grafts",
    "alternates of its own": 'git init -q ../x.git; echo "$PWD/../x.git/.git/objects" >> .git/objects/info/alternates',
    "objects are a link": 'rm -rf .git/objects; ln -s "$U/.git/objects" .git/objects',
    "broken objects": "git add -A; find .git/objects -type f -exec chmod u+w {} + -exec sh -c ': > {}' ';'",
    "a commit that names nothing": "git rev-parse HEAD~1 | tr 0-9a-f f-a0-9 > .git/HEAD",
    "a broken commit": "git commit-tree HEAD^{tree} -p HEAD -m x > .git/HEAD; rm -rf .git/objects/??",
    "a shallow history": "git rev-parse HEAD > .git/shallow",
    # configuration and what runs by itself
    "local settings": "git config user.name Mallory; git config core.worktree /; git config core.bare true",
    "a broken configuration": "echo '[[[' > .git/config",
    "hooks": "for h in post-checkout pre-commit post-index-change reference-transaction; do "
    "printf '#!/bin/sh\\ntouch $U/hook-ran\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done",
    "a hooks path": "mkdir h; printf '#!/bin/sh\\ntouch $U/hook-ran\\n' > h/post-checkout; chmod +x h/*; git config core.hooksPath h",
    "a file system monitor": "git config core.fsmonitor 'touch $U/monitor-ran'",
    "a filter": "git config filter.x.clean 'touch $U/filter-ran; cat'; echo '* filter=x' > .gitattributes; echo y > a.txt",
    "attributes in git's folder": "git config filter.x.clean 'touch $U/filter-ran'; echo '* filter=x' > .git/info/attributes; echo y > a.txt",
    "a text conversion": "git config diff.x.textconv 'touch $U/textconv-ran'; echo '* diff=x' > .gitattributes",
    "a merge driver": "git config merge.x.driver 'touch $U/driver-ran'; echo '* merge=x' > .gitattributes",
    "an alias": "git config alias.add '!touch $U/alias-ran'; git config alias.read-tree '!touch $U/alias-ran'",
    "an included file": "printf '[core]\\n\\tfsmonitor = touch $U/monitor-ran\\n' > c; git config include.path ../c",
    "an excludes file": "echo '*' > .git/info/exclude; echo hidden > hidden.txt",
    "a sparse checkout": "git sparse-checkout set src",
    # the index and locks
    "index flags": "git update-index --assume-unchanged a.txt; git update-index --skip-worktree src/b.py; echo x > a.txt",
    "a broken index": "echo nonsense > .git/index",
    "an index that is a link": 'rm .git/index; ln -s "$U/.git/index" .git/index',
    "locks": "touch .git/index.lock .git/HEAD.lock .git/config.lock .git/packed-refs.lock",
    "a split index": "git update-index --split-index; echo x > new; git add new",
    # worktrees, submodules, nested repositories
    "worktrees": "git worktree add -q ../elsewhere; git worktree prune; rm -rf ../elsewhere",
    "a nested repository that runs": "git init -q n; cd n; git commit -q --allow-empty -m x; "
    "git config core.fsmonitor 'touch $U/monitor-ran'; touch x",
    "the submodule runs": "cd lib; git config core.fsmonitor 'touch $U/monitor-ran'; "
    "git config core.hooksPath h; echo x >> code.c; echo '[submodule \"lib\"]' >> ../.gitmodules; echo ' ignore = none' >> ../.gitmodules",
    "the submodule is the user's": 'rm -rf lib/.git; echo "gitdir: $U/.git/modules/lib" > lib/.git; echo x >> lib/code.c',
    "the submodule is a link": 'rm -rf lib; ln -s "$U/lib" lib',
    "a submodule's commits": "cd lib; git commit -q --allow-empty -m mine; git gc -q --prune=now",
    "a submodule with a hostile name": "printf '[submodule \"../../x\"]\\n path = ../x\\n url = /\\n' > .gitmodules",
    # its own folder
    "no git folder": "rm -rf .git",
    "no git folder, then git": "rm -rf .git; git add -A; git commit -qm x; git clean -fdxq; git reset -q --hard",
    "git's folder is a link": 'rm -rf .git; ln -s "$U/.git" .git',
    "git's folder is a file": 'rm -rf .git; echo "gitdir: $U/.git/worktrees/none" > .git',
    "no folder": 'rm -rf "$PWD"',
    "the folder is a link": 'rm -rf "$PWD"; ln -s "$U" "$PWD"',
    "a folder becomes a link": 'rm -rf src; ln -s "$U/src" src',
    "a file becomes a link": 'rm a.txt; ln -s "$U/a.txt" a.txt',
    "other names of the user's files": 'ln -f "$U/.git/index" .git/index; ln -f "$U/.git/HEAD" .git/HEAD; ln -f "$U/a.txt" a.txt',
    "pipes in git's folder": "rm .git/HEAD .git/config .git/index; mkfifo .git/HEAD .git/config .git/index",
    "the slots' own notes are links": 'ln -sf "$U/a.txt" ../.git; ln -sf "$U/a.txt" ../checkout; ln -s "$U" ../w1; rm -rf "$PWD"',
    "folders in git's folder": "rm .git/HEAD .git/index; mkdir .git/HEAD .git/index",
    "no permissions": "chmod -R a-w .; chmod 0 src",
    "odd names": "touch $'new\\nline' $'tab\\t' '-rf' ':(top)x' $'latin\\xe9' 'CON' 'A.TXT' $'e\\xcc\\x81' $'\\xc3\\xa9'",
    "names that git refuses": "mkdir -p .GIT git~1 .git/unstuck; touch .GIT/config git~1/config",
    "very many files": "mkdir many; cd many; seq 3000 | xargs touch",
    "a very deep folder": "p=d; for i in $(seq 60); do p=$p/d; done; mkdir -p $p; touch $p/x",
    "a bottomless folder": "n=$(printf 'n%.0s' {1..200}); for i in $(seq 1500); do mkdir $n && cd $n || exit; done; touch x",
    "text in another encoding": "echo '* working-tree-encoding=UTF-16' > .gitattributes; echo x > a.txt; printf '\\xff\\xfe\\x00' > new",
    "folders with nothing in them": "mkdir -p src/none/none none",
    "links in a circle": "ln -s . here; ln -s ../src src/round; ln -s nowhere gone; ln -s /dev/zero zero",
    "a pipe and a socket": "mkfifo pipe src/pipe; rm a.txt; mkfifo a.txt; "
    "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\"",
    "a pipe that git would read": "mkdir p; mkfifo p/.gitignore; touch p/x",
    "pipes for our folders": "rm -rf .git lib; mkfifo .git lib .unstuck src/.git",
    "files from the future": "echo z > a.txt; touch -d 2300-01-01 a.txt src/b.py src .; echo y >> src/b.py; touch -d 1901-12-14 src/b.py",
    "folders that are other repositories": 'mkdir n; for d in n src; do echo "gitdir: $U/.git" > $d/.git; done; echo x > n/x',
    "a tree that no checkout could take": "t=$(printf '100644 .git\\0%20s' '' | git hash-object -t tree --literally -w --stdin); "
    "git commit-tree $t -p HEAD -m x > .git/HEAD",
    "another case": "mv a.txt A.txt; mv src SRC",
    "our folder": "mkdir .unstuck; echo mine > .unstuck/journal.db",
    # ways out
    "push to the remote": "git push origin HEAD:main; git push --force origin HEAD:refs/heads/mine",
    "push to an address": 'git push "$R" HEAD:refs/heads/mine; git push "file://$R" +HEAD:main',
    "push into the user's repository": 'git push "$U" HEAD:refs/heads/mine; git push "$U/.git" :side :v1',
    "push by a new remote": 'git remote add origin "$R"; git push origin HEAD:main; git push --mirror origin',
    "send a pack": 'git remote add user "$U"; git push user --delete side; git push --prune user "refs/heads/*"',
    "fetch into itself": 'git fetch "$U" "+refs/*:refs/*"; git pull "$R" main',
}  # fmt: skip
"""Done inside a slot. Nothing of the user's may change, not by a byte."""

OUT: dict[str, tuple[str, str]] = {
    "write a tracked file": ('echo x >> "$U/a.txt"', "a.txt"),
    "write a dirty file": ('echo more >> "$U/dirty.txt"', "dirty.txt"),
    "write an ignored file": ('echo x >> "$U/.env"', ".env"),
    "make a file": ('echo x > "$U/sly.txt"', "sly.txt"),
    "write a file as if it were old": (
        'cp -p "$U/dirty.txt" old; printf D | dd of="$U/dirty.txt" conv=notrunc; touch -r old "$U/dirty.txt"',
        "dirty.txt",
    ),
    "hide a file from git": ('git -C "$U" update-index --assume-unchanged a.txt', "a.txt"),
    "write what is hidden": ('echo hidden >> "$U/a.txt"', "a.txt"),
    "hide it as not checked out": ('git -C "$U" update-index --skip-worktree src/b.py', "src/b.py"),
    "settings for all repositories": ("touch ~/.gitconfig; git config --global x.y z", "~/.gitconfig"),
    "replace a commit": ('git -C "$U" replace HEAD HEAD~1', "refs/replace/"),
    "remove an untracked file": ('rm "$U/notes.txt"', "notes.txt"),
    "stage in the user's index": ('git -C "$U" add sly.txt', "sly.txt"),
    "stage through a link": ('ln -sf "$U/.git/index" .git/index; git rm -q --cached staged.txt', "staged.txt"),
    "write a hook": ('echo x > "$U/.git/hooks/pre-push"', "hooks/pre-push"),
    "change a setting": ('git -C "$U" config core.fsmonitor true; git -C "$U" config --unset core.fsmonitor', "config"),
    "delete a branch": ('git -C "$U" branch -D side', "git branch side "),
    "delete a tag": ('git -C "$U" tag -d light', "git tag light "),
    "move a branch": ('git -C "$U" branch -f other HEAD', "branch other went from"),
    "make a branch": ('git -C "$U" branch mine', "New in your repository: branch mine"),
    "clear the stash": ('git -C "$U" stash clear', "stash"),
    "expire the reflog": ('git -C "$U" reflog expire --expire=now --all', "logs/HEAD"),
    "push in the user's name": ('git -C "$U" push -q origin other', "remote branch origin/other"),
    "move the checkout": ('git -C "$U" checkout -q --detach', "Your checkout went from main to"),
}
"""Done outside of it, by absolute paths: without a sandbox nobody can prevent that, but it is told."""


PARTS = 4
"""The acts are shared out, so that they are tried side by side."""


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Make a repository with all that a user can lose."""
    root, remote = tmp_path / "user", tmp_path / "remote.git"
    script = f"""
    git init -q -b main lib-source; cd lib-source; echo lib > code.c; git add .; git commit -qm lib; cd ..
    git init -q --bare {remote}; git init -q -b main {root}; cd {root}
    mkdir src; echo a > a.txt; echo 'b = 1' > src/b.py; echo d > dirty.txt; printf '.env\\n' > .gitignore
    git -c protocol.file.allow=always submodule --quiet add {tmp_path}/lib-source lib
    git add -A; git commit -qm first; git commit -q --allow-empty -m second
    git branch side; git checkout -q side; echo s > s.txt; git add .; git commit -qm side
    git checkout -q -b other main; echo other > a.txt; git commit -qam other; git checkout -q main
    git tag -m release v1; git tag light; git remote add origin {remote}; git push -q origin main
    echo lost > lost.txt; git add .; git commit -qm lost; git reset -q --hard HEAD~1
    echo stashed >> a.txt; git stash -q; echo dirty >> dirty.txt; echo staged > staged.txt; git add staged.txt
    echo mine > notes.txt; echo secret > .env
    """
    subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=True, capture_output=True)
    return root


def act(work: GitWorkspace, script: str, sandbox: Sandbox | None = None) -> None:
    root = work.repository.root
    env = os.environ | {"U": str(root), "R": str(root.parent / "remote.git")}
    command = Command(argv=("bash", "-c", script), cwd=work.path(0), log=root.parent / "log")
    argv = sandboxed(command, "session", sandbox).argv
    subprocess.run(argv, cwd=work.path(0), env=env, capture_output=True, check=False, timeout=60)


def holdings(root: Path) -> dict[str, bytes]:
    """Read every byte of the user's: checkout, git's folder and remote; objects, which are never changed, by name."""
    ours = (".git/unstuck", ".git/refs/unstuck", ".git/refs/heads/unstuck", ".git/logs/refs/heads/unstuck")
    read = {}
    for place in (root, root.parent / "remote.git"):
        for path in _files(place):
            name = str(path.relative_to(root.parent))
            if not any(f"{name}/".startswith(f"{root.name}/{part}/") for part in ours):
                read[name] = _content(path) if "/objects/" not in name else b""
    return read


def _files(place: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(place):
        yield from (Path(folder, name) for name in (*names, *folders) if not Path(folder, name).is_dir())


def _content(path: Path) -> bytes:
    return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_that_an_agent_does_in_its_slot_reaches_the_user(user: Path, part: int) -> None:
    work = workspace(user)
    base, git = work.tip(), Git(user)
    lost = git("rev-parse", "main@{1}")
    work.prepare(0, base)
    work.note_repository_state()
    before = holdings(user)
    offenders = []
    for number, (name, script) in list(enumerate(OWN.items()))[part::PARTS]:
        act(work, script)
        if work.has_slot(0):
            work.snapshot(0, str(number))
            git("cat-file", "-e", work.write_tree(0, base).id)
        work.prepare(0, base)
        now = holdings(user)
        changed = [path for path, content in before.items() if now.get(path) != content]
        changed += [path for path in now if path not in before and "/objects/" not in path]
        clean = Git(work.path(0))("status", "--porcelain", "--ignored", "--untracked-files=all")
        strange = [
            path
            for path in _files(work.path(0))
            if not (path.is_symlink() or path.is_file()) or path.lstat().st_nlink > 1
        ]
        if changed or clean or strange or Git(work.path(0))("rev-parse", "HEAD") != base:
            offenders.append((name, changed, clean, strange))
    assert not offenders
    assert len(OWN) + len(OUT) >= 60
    assert work.repository_changes.since_last_look() == ()
    git.with_settings("fsck.gitmodulesName=ignore")("fsck", "--full", "--strict")  # that one is in a snapshot
    assert git("cat-file", "-t", lost) == "commit"


def test_what_an_agent_does_outside_of_its_slot_is_told(user: Path) -> None:
    work = workspace(user)
    work.prepare(0, work.tip())
    work.note_repository_state()
    untold = []
    for name, (script, word) in OUT.items():
        act(work, script)
        told = work.repository_changes.since_last_look()
        if not any(word in sentence for sentence in told):
            untold.append((name, told))
    assert not untold
    assert work.repository_changes.since_last_look() == ()


@pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem() or "there is a sandbox")
def test_with_bubblewrap_nothing_of_the_users_changes_at_all(user: Path) -> None:
    work = workspace(user)
    base = work.tip()
    sandbox = Sandbox(
        purposes=frozenset({"session"}),
        only_named=False,
        offline=frozenset(),
        root=user,
        common_dir=user / ".git",
        slots=work.slots,
        linked=(),
        write=(),
    )
    work.prepare(0, base)
    act(work, "git log -1 && git commit -qam own --allow-empty && echo works > ran", sandbox)
    assert (work.path(0) / "ran").read_text() == "works\n"
    work.note_repository_state()
    before, offenders = holdings(user), []
    reaching = {name: script for name, script in OWN.items() if "$U" in script or "$R" in script}
    for name, script in {**reaching, **{f"outside: {name}": script for name, (script, _) in OUT.items()}}.items():
        work.prepare(0, base)
        act(work, script, sandbox)
        now = holdings(user)
        if changed := [path for path, content in before.items() if now.get(path) != content] + [*(now.keys() - before)]:
            offenders.append((name, changed))
    assert not offenders
    assert work.repository_changes.since_last_look() == ()


def test_the_users_own_garbage_collection_breaks_no_slot(user: Path) -> None:
    work = workspace(user)
    first = work.tip()
    path = work.prepare(0, first)
    (path / "new.txt").write_text("x\n")
    tree = work.write_tree(0, first).id
    git = Git(user)
    git("reset", "-q", "--hard", "side")
    git("checkout", "-q", "--orphan", "fresh")
    git("commit", "-q", "-m", "fresh")
    for ref in git("for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags", "refs/remotes").splitlines():
        if ref != "refs/heads/fresh":
            git("update-ref", "-d", ref)
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "--quiet", "--prune=now")
    agent = Git(path)
    assert {"main", "other", "side"} <= set(agent("for-each-ref", "--format=%(refname:short)", "refs/heads").split())
    assert agent("describe") == "v1"
    agent("fsck", "--strict")
    agent("commit", "-qam", "mine", "--allow-empty")
    assert work.changed_paths(first, tree) == ("new.txt",)
    assert work.write_tree(0, first).id == tree
    assert work.snapshot(0, "1") is not None
    git("fsck", "--strict")


COLLECTS_BEFORE_A_REF_IS_WRITTEN = """\
#!/bin/sh
case "$*" in *"update-ref --stdin"*) [ -e {done} ] || {{ touch {done}; {git} gc --quiet --prune=now; }};; esac
exec {git} "$@"
"""


def test_garbage_collected_before_a_tree_is_held_takes_nothing(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = workspace(user)
    first = work.tip()
    (work.prepare(0, first) / "new.txt").write_text("x\n")
    git, done, folder = shutil.which("git"), user.parent / "collected", user.parent / "bin"
    folder.mkdir()
    (folder / "git").write_text(COLLECTS_BEFORE_A_REF_IS_WRITTEN.format(git=git, done=done))
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    tree = work.write_tree(0, first).id
    assert done.exists()
    assert work.changed_paths(first, tree) == ("new.txt",)
    Git(user)("fsck", "--strict")
