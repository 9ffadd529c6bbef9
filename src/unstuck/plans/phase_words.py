"""The words of phase plans: ids, lists of phases, and statuses in all their spellings, in English and other languages."""

# ruff: noqa: RUF001  # words of other languages have letters that look like ours, and people do write such dashes

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, cast

PhaseStatus = Literal["pending", "running", "complete", "failed", "blocked", "skipped"]


COLUMNS: Mapping[str, str] = {
    "phase": "fase|etapa|étape|faza|etap|fáze|этап|фаза|етап|aşama|faz|fas|vaihe|フェーズ|阶段|階段|단계",
    "name": "bezeichnung|titel|nombre|título|nom|titre|nome|titolo|naam|nazwa|název|название|имя|назва|ad|namn|navn|nimi|名前|名称|名稱|이름",
    "depends on": "abhängig von|hängt ab von|abhängigkeiten|voraussetzung|voraussetzungen|depende de|dependencias|dépend de|dépendances"
    "|dipende da|dipendenze|dependências|hangt af van|afhankelijk van|afhankelijkheden|zależy od|zależności|závisí na|závislosti"
    "|зависит от|зависимости|залежить від|залежності|bağımlı|bağımlılıklar|bağlı|beror på|beroenden|afhænger af|avhenger av"
    "|avhengigheter|riippuu|riippuvuudet|依存|依存先|依存関係|前提|依赖|依賴|依赖于|前置|의존|의존성|선행",
    "parallel with": "parallel mit|parallel zu|gleichzeitig mit|en paralelo con|paralelo con|paralelo a|en parallèle avec|parallèle avec"
    "|parallèle à|in parallelo con|parallelo a|em paralelo com|paralelo com|parallel met|gelijktijdig met|równolegle z|souběžně s"
    "|paralelně s|параллельно с|паралельно з|paralel|parallellt med|parallelt med|rinnan|rinnakkain|並行|並列|并行|可并行|병렬|병행",
    "estimate": "aufwand|schätzung|punkte|estimación|puntos|estimation|effort|stima|punti|estimativa|pontos|schatting|punten|szacunek"
    "|punkty|odhad|оценка|баллы|оцінка|tahmin|puan|uppskattning|poäng|arvio|見積もり|見積り|ポイント|估算|点数|추정|포인트",
    "status": "stand|zustand|estado|statut|état|stato|situação|stan|stav|статус|состояние|durum|tila|状態|ステータス|状态|狀態|상태",
    "tool type": "werkzeug|werkzeugart|herramienta|outil|strumento|ferramenta|gereedschap|narzędzie|инструмент|araç|ツール|工具|도구",
    "command": "befehl|kommando|comando|commande|opdracht|polecenie|команда|komut|コマンド|命令|명령",
}  # fmt: skip
"""What each of our names is called elsewhere."""

STATUSES: Sequence[tuple[str, str, str, str, str]] = (
    ("Offen|Nicht begonnen|Ausstehend", "In Arbeit|In Bearbeitung|Läuft", "Erledigt|Abgeschlossen|Fertig", "Blockiert", "Übersprungen"),
    ("Pendiente|Sin empezar", "En curso|En progreso", "Completado|Completada|Hecho|Terminado", "Bloqueado|Bloqueada", "Omitido|Omitida"),
    ("À faire|Non commencé|En attente", "En cours", "Terminé|Terminée|Fait", "Bloqué|Bloquée", "Ignoré|Ignorée"),
    ("Da fare|Non iniziato", "In corso", "Completato|Completata|Fatto", "Bloccato|Bloccata", "Saltato|Saltata"),
    ("Pendente|Não iniciado|A fazer", "Em andamento|Em progresso", "Concluído|Concluída|Feito", "Bloqueado|Bloqueada", "Ignorado|Ignorada"),
    ("Te doen|Niet begonnen", "Bezig", "Voltooid|Gereed|Klaar", "Geblokkeerd", "Overgeslagen"),
    ("Do zrobienia|Nie rozpoczęto", "W toku", "Ukończone|Gotowe|Zakończone", "Zablokowane", "Pominięte"),
    ("Čeká|Nezahájeno", "Probíhá", "Hotovo|Dokončeno", "Blokováno", "Přeskočeno"),
    ("Не начато|Ожидает", "В работе|В процессе", "Готово|Завершено|Выполнено", "Заблокировано", "Пропущено"),
    ("Не розпочато|Очікує", "У роботі|В роботі", "Завершено|Виконано", "Заблоковано", "Пропущено"),
    ("Bekliyor|Başlamadı", "Devam ediyor", "Tamamlandı|Bitti", "Engellendi", "Atlandı"),
    ("Ej påbörjad|Att göra", "Pågår", "Klar|Färdig", "Blockerad", "Överhoppad"),
    ("未着手", "進行中", "完了", "ブロック中", "スキップ"),
    ("未开始|待办", "进行中", "已完成|完成", "已阻塞", "已跳过"),
    ("시작 전|대기", "진행 중", "완료", "차단됨", "건너뜀"),
)  # fmt: skip
"""For each language: pending, running, complete, blocked, skipped. The first of several is the one that we write."""
ORDER = ("pending", "running", "complete", "blocked", "skipped")
CANONICAL: Mapping[str, str] = {word: name for name, words in COLUMNS.items() for word in words.split("|")}
TRANSLATED: Mapping[str, str] = {
    word.casefold(): status
    for row in STATUSES
    for status, words in zip(ORDER, row, strict=True)
    for word in words.split("|")
}
PHASE = "|".join(["phases?", *(f"{word}[sn]?" if word.isascii() else word for word in COLUMNS["phase"].split("|"))])
"""The word Phase in all languages, as a pattern."""
_SPACED = "|".join(word for word in PHASE.split("|") if word < "\u3000")
LEAD = rf"(?:(?:{_SPACED})[ \t]+|(?:フェーズ|阶段|階段|단계)[ \t]*)"
"""The same in front of an id: only some scripts do without a space."""
COLON = "[:\N{FULLWIDTH COLON}]"
NOTHING = frozenset(
    ["keine", "keiner", "nichts", "ninguna", "ninguno", "nada", "aucune", "aucun", "rien", "nessuna", "nessuno", "niente", "nenhuma", "nenhum", "geen", "niets", "brak", "adn", "dn", "yok", "ingen", "inga", "eimitn"]
)  # fmt: skip
"""Words for no phase at all, as ids are normalised; those of other scripts are empty then."""
AND = r"\s(?:und|y|e|et|ed|en|i|a|och|og|ve|ja)\s|[、和及と와과]|\s(?:и|та|і)\s"


def canonical(name: str) -> str:
    """Return our own name for a column or a fact; the name itself where we know no other."""
    folded = " ".join(name.casefold().split())
    return CANONICAL.get(folded, folded)


def in_the_language_of(text: str, status: str) -> str:
    """Return the word for a status in the language that a text has its own status in; empty for English."""
    said = " ".join(text.casefold().split())
    for row in STATUSES:
        if any(_says(said, word.casefold()) for words in row for word in words.split("|")):
            place = "blocked" if status == "failed" else status
            return row[ORDER.index(place)].partition("|")[0]
    return ""


def _says(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


_WORD = re.compile(rf"\b(?:{PHASE})(?![a-z])", re.IGNORECASE)
_REMARK = re.compile(r"\([^()]*\)?|\[[^\][]*\]?")
_SEPARATOR = re.compile(rf"[,;&+，；]|\band\b|{AND}", re.IGNORECASE)
_RANGE = re.compile(r"(.+?)(?:\s*[-–—]\s*|\s+(?:to|through)\s+)(.+)", re.IGNORECASE)
LONGEST_RANGE = 60
_LINK = re.compile(r"\[([^\][]*)\]\([^()]*\)")
_TITLED = re.compile(r"([\w.-]{1,40}?)(?:\s*:\s+|\s+[-–—]\s+)(.*[^\W\d_]{2}.*)")
_TOKEN = re.compile(r"[\s/:]+|<br\s*/?>", re.IGNORECASE)
_NOTHING = frozenset({"", "none", "nothing", "na", "no", "nil", "null"}) | NOTHING
_ALL = frozenset({"all", "allprevious", "allabove", "everything"})

SYMBOLS: Mapping[str, PhaseStatus] = {
    "⬜": "pending",
    "🔲": "pending",
    "☐": "pending",
    "🔄": "running",
    "⏳": "running",
    "🚧": "running",
    "✅": "complete",
    "☑": "complete",
    "✔": "complete",
    "⏸": "blocked",
    "⏭": "skipped",
    "❌": "failed",
}
STATUS_WORDS: Mapping[str, PhaseStatus] = {
    "todo": "pending",
    "to do": "pending",
    "not started": "pending",
    "pending": "pending",
    "in progress": "running",
    "running": "running",
    "done": "complete",
    "complete": "complete",
    "completed": "complete",
    "blocked": "blocked",
    "skipped": "skipped",
    "skip": "skipped",
    "failed": "failed",
}
_BLANK = str.maketrans("*`_-", "    ")
WRITTEN: Mapping[PhaseStatus, tuple[str, str]] = {
    "pending": ("⬜", "Not Started"),
    "running": ("🔄", "In Progress"),
    "complete": ("✅", "Complete"),
    "failed": ("⏸️", "Blocked"),
    "blocked": ("⏸️", "Blocked"),
    "skipped": ("⏭️", "Skipped"),
}
"""How we write a status: as a symbol, and in words. Superplans know no sign for failed; what failed waits for a person."""


class Named(NamedTuple):
    """The phases that a cell or a line names."""

    ids: tuple[str, ...]
    optional: bool = False
    """It says `or nothing if skipped`: naming them and naming none comes to the same."""


def normalise(raw: str) -> str:
    """Return a phase's id: without the word Phase, in lower case, letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", _WORD.sub(" ", raw).lower())


def without_links(text: str) -> str:
    """Return a text with the words of its links in their place."""
    return _LINK.sub(r"\1", text) if "](" in text else text


def read_cell(text: str) -> tuple[str, str]:
    """Read the cell that names a row's phase: its id as it stands there, and the title that may follow: `2A: Backend`."""
    shown = "".join(char for char in " ".join(without_links(text).split()) if char.isprintable())
    shown = _REMARK.sub("", shown.replace("*", "").replace("`", "")).strip()
    shown = _WORD.sub("", shown, count=1).strip(" :") if _WORD.match(shown) else shown
    titled = _TITLED.fullmatch(shown)
    return (titled[1], titled[2].strip()) if titled and any(map(str.isdigit, titled[1])) else (shown, "")


def read_status(text: str) -> tuple[PhaseStatus, bool]:
    """Return the status that a text names, and whether it names exactly one that we know."""
    symbols = dict.fromkeys(SYMBOLS[char] for char in text if char in SYMBOLS)
    if symbols:
        return next(iter(symbols)), len(symbols) == 1
    words = " ".join(_REMARK.sub(" ", _ticked(text)).translate(_BLANK).casefold().split())
    known = {**STATUS_WORDS, **cast("Mapping[str, PhaseStatus]", TRANSLATED)}
    found = known.get(words) or next((value for word, value in known.items() if words.startswith(word)), None)
    return found or "pending", found is not None or not words.strip("–— ")


def _ticked(text: str) -> str:
    """Read a lone box as the word that it stands for."""
    box = text.strip()
    return "done" if box in ("[x]", "[X]") else text


def read_phases(text: str, order: Sequence[str], own: str = "") -> Named:
    """Read a list such as `2A, Phase 2B and 3`; `order` is all phases, for ranges and for `all previous`."""
    optional = any("nothing" in remark.casefold() for remark in _REMARK.findall(text))
    found: dict[str, None] = {}
    for part in _SEPARATOR.split(_REMARK.sub(" ", without_links(text))):
        found.update(dict.fromkeys(_phases(part, order, own)))
    return Named(tuple(found), optional)


def _phases(part: str, order: Sequence[str], own: str) -> Iterator[str]:
    name = normalise(part.replace("*", " "))
    if name in _NOTHING:
        return
    if name in _ALL:
        yield from order[: order.index(own)] if own in order else order
        return
    span = _RANGE.fullmatch(part.strip()) if name not in order and len(part) <= LONGEST_RANGE else None
    ends = [normalise(end) for end in span.groups()] if span else []
    if ends and all(end in order for end in ends):
        yield from order[order.index(ends[0]) : order.index(ends[1]) + 1]
    elif name in order:
        yield name
    else:
        yield from _apart(part, order) or (name,)


def _apart(part: str, order: Sequence[str]) -> tuple[str, ...]:
    """Return the phases in a part that is more than an id: `2A/2B`, `1: Setup`. A word that may be a typing error counts."""
    words = [normalise(word) for word in _TOKEN.split(part)]
    named = tuple(word for word in words if word in order or any(map(str.isdigit, word)))
    return named if any(word in order for word in named) else ()
