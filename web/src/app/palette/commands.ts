/** One thing that the palette can do. */
export type Command = {
  id: string;
  group: string;
  label: string;
  /** What tells it from others of its kind: who, where, until when. */
  detail?: string;
  /** More words by which it is found. */
  keywords?: string;
  run: () => void;
};

export type CommandGroup = { group: string; commands: Command[] };

// How well a word is met: at the beginning of the label, of a word of it, inside it, elsewhere.
const atStart = 8;
const atWord = 5;
const inLabel = 3;
const elsewhere = 1;

/** How well a command answers what was typed; 0 when a word of it is nowhere. */
export function scoreOf(command: Command, query: string): number {
  const label = command.label.toLowerCase();
  const rest = `${command.group} ${command.detail ?? ""} ${command.keywords ?? ""}`.toLowerCase();
  let total = 0;
  for (const word of wordsOf(query)) {
    const score = scoreWord(label, rest, word);
    if (score === 0) return 0;
    total += score;
  }
  return total;
}

function scoreWord(label: string, rest: string, word: string): number {
  const at = label.indexOf(word);
  if (at === 0) return atStart;
  if (at > 0)
    return label.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(word)) ? atWord : inLabel;
  return rest.includes(word) ? elsewhere : 0;
}

function wordsOf(query: string): string[] {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

/** The commands that answer a query, grouped; groups keep their order until something is typed. */
export function findCommands(commands: Command[], query: string): CommandGroup[] {
  if (wordsOf(query).length === 0) return grouped(commands);
  const scored = commands
    .map((command, index) => ({ command, index, score: scoreOf(command, query) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.index - b.index);
  return grouped(scored.map(({ command }) => command));
}

function grouped(commands: Command[]): CommandGroup[] {
  const groups = new Map<string, Command[]>();
  for (const command of commands) {
    groups.set(command.group, [...(groups.get(command.group) ?? []), command]);
  }
  return [...groups].map(([group, list]) => ({ group, commands: list }));
}

/** The index that an arrow key leads to, around both ends; undefined for other keys. */
export function nextIndex(index: number, count: number, key: string): number | undefined {
  if (count === 0) return undefined;
  if (key === "ArrowDown") return (index + 1) % count;
  if (key === "ArrowUp") return (index - 1 + count) % count;
  return undefined;
}
