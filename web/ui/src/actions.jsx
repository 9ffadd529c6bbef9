// What a person can do about a task: the same requests as the commands, with the words that they need.
import { useState } from "preact/hooks";
import { kept, request } from "./store.js";

const WAYS = [
  { verb: "answer", word: "Answer", needs: true, about: "The agent reads it, and goes on." },
  { verb: "retry", word: "Try again", about: "With a fresh budget; what you write is a hint." },
  { verb: "accept", word: "Accept as it is", needs: true, about: "The work lands; what you write is the reason in its commit." },
  { verb: "skip", word: "Skip", about: "Go on without it; what you write is kept as the reason." },
];

export function Ways({ id, tree, approval, outside }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  if (kept) return <Commands id={id} outside={outside} />;
  const send = async (verb) => {
    setBusy(true);
    const done = await request(verb, id, text, verb === "accept" ? tree : "");
    setBusy(false);
    if (done) setText("");
  };
  if (outside)
    return (
      <div class="ways">
        <button type="button" disabled={busy} onClick={() => send("retry")}>
          It is seen to: try again
        </button>
        <button type="button" class="quiet" disabled={busy} onClick={() => send("skip")}>
          Skip
        </button>
      </div>
    );
  const ways = WAYS.filter((way) => way.verb !== "accept" || tree);
  return (
    <form class="answer" onSubmit={(event) => (event.preventDefault(), text.trim() && send("answer"))}>
      <textarea
        rows={2}
        value={text}
        maxLength={10000}
        placeholder="Your answer, a hint, or a reason…"
        aria-label={`Answer, hint or reason for task ${id}`}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && text.trim() && send("answer")}
      />
      <div class="ways">
        {approval && (
          <button type="button" class="main" disabled={busy} onClick={() => send("approve")}>
            Approve
          </button>
        )}
        {ways.map((way) => (
          <button
            type="button"
            key={way.verb}
            title={way.about}
            class={way.verb === "answer" && !approval ? "main" : ""}
            disabled={busy || (way.needs && !text.trim())}
            onClick={() => send(way.verb)}
          >
            {way.word}
          </button>
        ))}
      </div>
    </form>
  );
}

const quoted = (id) => (/^[\w.-]+$/.test(id) ? id : `'${id}'`);
const Commands = ({ id, outside }) => (
  <pre class="commands">
    {(outside
      ? [`unstuck retry ${quoted(id)}`, "unstuck resume"]
      : [
          `unstuck answer ${quoted(id)} 'TEXT'`,
          `unstuck retry ${quoted(id)} --hint 'TEXT'`,
          `unstuck accept ${quoted(id)} --because 'TEXT'`,
          `unstuck skip ${quoted(id)}`,
        ]
    ).join("\n")}
  </pre>
);

export function Undo({ seq }) {
  if (kept) return null;
  return (
    <button type="button" class="quiet" onClick={() => request("undo", null, String(seq))}>
      Undo
    </button>
  );
}
