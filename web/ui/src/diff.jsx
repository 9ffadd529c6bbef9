// A patch, drawn: files that fold, lines with their numbers. It is text to us, whatever is in it.
import { useMemo, useState } from "preact/hooks";

const SHOWN = 800;

export function Diff({ text }) {
  const files = useMemo(() => parse(text), [text]);
  if (!files.length) return <pre class="output">{text || "Nothing differs."}</pre>;
  return (
    <div class="diff">
      {files.map((file, at) => (
        <File key={at} file={file} open={files.length <= 8 || at < 3} />
      ))}
    </div>
  );
}

function File({ file, open }) {
  const [all, setAll] = useState(false);
  const lines = all ? file.lines : file.lines.slice(0, SHOWN);
  return (
    <details open={open}>
      <summary>
        <bdi>{file.name}</bdi> <span class="aside"><i class="plus">+{file.plus}</i> <i class="minus">−{file.minus}</i></span>
      </summary>
      {file.binary ? <p class="muted pad">A file without lines.</p> : (
        <div class="code" role="table" aria-label={`Changes of ${file.name}`} tabIndex={0}>
          {lines.map((line, at) => (
            <div key={at} role="row" class={`line ${line.sort}`}>
              <span class="no" aria-hidden="true">{line.old}</span>
              <span class="no" aria-hidden="true">{line.new}</span>
              <code role="cell">{line.text || " "}</code>
            </div>
          ))}
          {file.lines.length > lines.length && (
            <button type="button" class="quiet" onClick={() => setAll(true)}>
              Show {file.lines.length - lines.length} more lines
            </button>
          )}
        </div>
      )}
    </details>
  );
}

export function parse(text) {
  const files = [];
  let file = null, old = 0, fresh = 0, body = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("diff --git ")) {
      file = { name: line.replace(/^diff --git a\/(.*) b\/.*$/, "$1"), lines: [], plus: 0, minus: 0, binary: false };
      files.push(file);
      body = false;
    } else if (!file) continue;
    else if (line.startsWith("@@")) {
      const at = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
      [old, fresh] = at ? [Number(at[1]), Number(at[2])] : [0, 0];
      body = true;
      file.lines.push({ sort: "hunk", old: "", new: "", text: line });
    } else if (!body) {
      if (line.startsWith("GIT binary patch") || line.startsWith("Binary files")) file.binary = true;
      if (line.startsWith("+++ b/")) file.name = line.slice(6);
    } else if (line.startsWith("+")) {
      file.plus++;
      file.lines.push({ sort: "added", old: "", new: fresh++, text: line });
    } else if (line.startsWith("-")) {
      file.minus++;
      file.lines.push({ sort: "gone", old: old++, new: "", text: line });
    } else if (line.startsWith(" ")) file.lines.push({ sort: "", old: old++, new: fresh++, text: line });
    else if (line) file.lines.push({ sort: "note", old: "", new: "", text: line });
  }
  return files;
}
