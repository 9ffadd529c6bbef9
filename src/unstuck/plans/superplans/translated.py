"""The words of superplans in other languages: columns and facts, the word Phase, and statuses, read and written back."""

# ruff: noqa: RUF001  # words of other languages have letters that look like ours

import re
from collections.abc import Mapping, Sequence

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
STATUS_WORDS: Mapping[str, str] = {
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
