"""A coding agent for tests: plays one recorded session per call, and writes down how it was called.

    played_agent.py PLAY ARGUMENT...

PLAY is a JSON file with a list of sessions, each `{"lines", "files", "exit", "wait_for"}`; the last is played again.
"""

import json
import os
import sys
import time
from pathlib import Path

play = Path(sys.argv[1])
calls = play.with_suffix(".calls")
given = "" if sys.stdin.isatty() else "" if os.environ.get("LISTENS") else sys.stdin.read()
with calls.open("a", encoding="utf-8") as file:
    file.write(json.dumps({"argv": sys.argv[2:], "stdin": given, "task": os.environ.get("UNSTUCK_TASK")}) + "\n")
sessions = json.loads(play.read_text(encoding="utf-8"))
session = sessions[min(len(calls.read_text(encoding="utf-8").splitlines()), len(sessions)) - 1]
for line in session.get("lines", ()):
    sys.stdout.write(f"{json.dumps(line) if isinstance(line, dict) else line}\n")
    sys.stdout.flush()
for name, text in session.get("files", {}).items():
    Path(name).write_text(text, encoding="utf-8")
if session.get("listens"):
    for line in sys.stdin:
        said = json.loads(line)["message"]["content"][0]["text"]
        with calls.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"heard": said}) + "\n")
        if session["listens"] in said:
            break
    for name, text in session.get("then", {}).items():
        Path(name).write_text(text, encoding="utf-8")
    for line in session.get("last", ()):
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()
    sys.stdin.read()
if session.get("hangs"):
    time.sleep(10**6)
sys.exit(session.get("exit", 0))
