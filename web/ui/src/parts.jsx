// Small things that every view is made of.
import { useEffect, useRef, useState } from "preact/hooks";
import { status } from "./words.js";

export const Mark = ({ name, still }) => (
  <span class={`mark tone-${status(name).tone} ${name === "running" && !still ? "alive" : ""}`} aria-hidden="true">
    {status(name).sign}
  </span>
);

export const Status = ({ name }) => <span class={`word tone-${status(name).tone}`}>{status(name).word}</span>;

// Text from elsewhere: its direction stays its own.
export const Foreign = ({ children, ...more }) => <bdi {...more}>{children}</bdi>;

export function Copy({ text }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      /* it can be selected by hand */
    }
  };
  return (
    <div class="command">
      <code>{text}</code>
      <button type="button" class="quiet" onClick={copy} aria-label={`Copy: ${text}`}>
        {done ? "Copied" : "Copy"}
      </button>
    </div>
  );
}

export const Section = ({ title, aside, children, id }) => (
  <section class="part" aria-labelledby={id}>
    <header>
      <h2 id={id}>{title}</h2>
      {aside && <span class="aside">{aside}</span>}
    </header>
    {children}
  </section>
);

export const Empty = ({ title, children }) => (
  <div class="empty">
    <p class="lead">{title}</p>
    {children}
  </div>
);

// Rows of one height, of which only those in sight are there: ten thousand cost as much as forty.
export function Rows({ items, height, draw, label }) {
  const box = useRef(null);
  const [range, setRange] = useState([0, 40]);
  useEffect(() => {
    let asked = 0;
    const look = () => {
      asked = 0;
      const top = box.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / height) - 10);
      const last = first + Math.ceil(innerHeight / height) + 20;
      setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
    };
    const soon = () => (asked ||= requestAnimationFrame(look));
    look();
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => {
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
      cancelAnimationFrame(asked);
    };
  }, [height, items.length]);
  const [first, last] = range;
  return (
    <div class="rows" ref={box} role="list" aria-label={label} style={{ height: `${items.length * height}px` }}>
      {items.slice(first, last).map((item, at) => (
        <div
          key={item.id ?? item.seq}
          role="listitem"
          aria-setsize={items.length}
          aria-posinset={first + at + 1}
          class="row-box"
          style={{ top: `${(first + at) * height}px`, height: `${height}px` }}
        >
          {draw(item)}
        </div>
      ))}
    </div>
  );
}

const ICONS = {
  morning: "M12 3v2M5.6 5.6l1.4 1.4M3 12h2M19 12h2M17 7l1.4-1.4M7.5 15a4.5 4.5 0 1 1 9 0M3 19h18",
  plan: "M9 4h6v4H9zM3 16h6v4H3zM15 16h6v4h-6zM12 8v4M6 16v-2q0-2 2-2h8q2 0 2 2v2",
  tasks: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  timeline: "M3 6h8M9 12h9M6 18h7M3 3v18",
  cost: "M4 19V5M4 19h16M8 15l3.5-4 3 2.5L20 7",
  experience: "M12 4a6 6 0 0 1 3.5 10.9V18h-7v-3.1A6 6 0 0 1 12 4zM9.5 21h5",
  log: "M5 4h14v16H5zM8.5 8.5h7M8.5 12h7M8.5 15.5h4",
  workers: "M4 5h16v5H4zM4 14h16v5H4zM8 7.5h.01M8 16.5h.01",
  theme: "M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5z",
};
export const Icon = ({ name }) => (
  <svg viewBox="0 0 24 24" class="icon" aria-hidden="true">
    <path d={ICONS[name]} />
  </svg>
);
