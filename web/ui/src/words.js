// What each status is called, the sign that stands for it, and its tone in the style sheet.
export const STATUS = {
  stuck: { word: "stuck", sign: "!", tone: "stuck" },
  running: { word: "running", sign: "▸", tone: "running" },
  verifying: { word: "checking", sign: "◌", tone: "running" },
  waiting: { word: "waiting", sign: "◷", tone: "waiting" },
  interrupted: { word: "interrupted", sign: "‖", tone: "waiting" },
  blocked: { word: "blocked", sign: "⊘", tone: "blocked" },
  pending: { word: "pending", sign: "·", tone: "pending" },
  skipped: { word: "skipped", sign: "↷", tone: "skipped" },
  complete: { word: "landed", sign: "✓", tone: "landed" },
};
export const ACTIVE = ["running", "verifying"];
export const status = (name) => STATUS[name] ?? STATUS.pending;

export function span(seconds) {
  if (seconds == null || Number.isNaN(seconds)) return "";
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole < 10 && seconds % 1 ? seconds.toFixed(1) : whole} s`;
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  return hours ? `${hours} h ${String(minutes).padStart(2, "0")} min` : `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
}

export function price(usd) {
  if (usd == null) return "";
  return usd && usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
}

export function tokens(count) {
  if (!count) return "0";
  if (count < 1000) return String(count);
  return count < 1e6 ? `${(count / 1e3).toFixed(count < 1e4 ? 1 : 0)} k` : `${(count / 1e6).toFixed(1)} M`;
}

const TIME = { hour: "2-digit", minute: "2-digit", hour12: false };
export const clock = (at, seconds = false) =>
  new Date(at * 1000).toLocaleTimeString([], seconds ? { ...TIME, second: "2-digit" } : TIME);
export const day = (at) =>
  new Date(at * 1000).toLocaleDateString([], { weekday: "short", day: "numeric", month: "short" });
export const moment = (at) => `${day(at)}, ${clock(at)}`;
export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
