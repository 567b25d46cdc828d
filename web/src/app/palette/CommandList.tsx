import { Kbd, VisuallyHidden } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { plural } from "../../format/number";
import { type Command, findCommands, nextIndex } from "./commands";
import type { Dialogs } from "./Palette";
import classes from "./Palette.module.css";
import { useCommands } from "./useCommands";

/**
 * A field and the list it narrows, as one combobox: the focus stays in the field,
 * and a screen reader hears the option that the arrow keys reach.
 */
export function CommandList({ onClose, dialogs }: { onClose: () => void; dialogs: Dialogs }) {
  const id = useId();
  const commands = useCommands(dialogs);
  const [query, setQuery] = useState("");
  const [active, setActive] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const groups = findCommands(commands, query);
  const flat = groups.flatMap((group) => group.commands);
  // The list may shrink under the choice.
  const index = Math.min(active, flat.length - 1);
  const optionId = (command: Command | undefined) => command && `${id}-${command.id}`;

  useEffect(() => {
    list.current?.querySelector(`[data-index="${index}"]`)?.scrollIntoView?.({ block: "nearest" });
  }, [index]);

  function run(command: Command | undefined): void {
    if (!command) return;
    onClose();
    command.run();
  }

  function onKeyDown(event: KeyboardEvent): void {
    // An input method is choosing characters.
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Enter") {
      event.preventDefault();
      run(flat[index]);
      return;
    }
    const next = nextIndex(index, flat.length, event.key);
    if (next === undefined) return;
    event.preventDefault();
    setActive(next);
  }

  return (
    <div className={classes.palette} data-testid="palette">
      <div className={classes.search}>
        <IconSearch size={18} aria-hidden />
        <input
          type="text"
          role="combobox"
          aria-label="Find a page, an incident, a run, a runbook or an action"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={optionId(flat[index]) ?? ""}
          aria-autocomplete="list"
          placeholder="Find or do…"
          autoComplete="off"
          spellCheck={false}
          className={classes.input}
          value={query}
          onChange={(event) => {
            setQuery(event.currentTarget.value);
            setActive(0);
          }}
          onKeyDown={onKeyDown}
          data-autofocus
        />
      </div>
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label="Commands"
        className={classes.list}
        ref={list}
        tabIndex={-1}
      >
        {groups.map(({ group, commands: own }) => (
          // biome-ignore lint/a11y/useSemanticElements: a fieldset has no place in a listbox
          <div key={group} role="group" aria-label={group}>
            <div className={classes.group} aria-hidden="true">
              {group}
            </div>
            {own.map((command) => {
              const at = flat.indexOf(command);
              return (
                // biome-ignore lint/a11y/useKeyWithClickEvents: keys are taken in the field, which keeps the focus
                <div
                  key={command.id}
                  id={optionId(command)}
                  role="option"
                  aria-selected={at === index}
                  tabIndex={-1}
                  className={classes.option}
                  data-index={at}
                  onClick={() => run(command)}
                  onMouseMove={() => setActive(at)}
                  data-testid="command"
                >
                  <span className={classes.label}>{command.label}</span>
                  {command.detail && <span className={classes.detail}>{command.detail}</span>}
                </div>
              );
            })}
          </div>
        ))}
      </div>
      {flat.length === 0 && <p className={classes.none}>Nothing is called “{query}”.</p>}
      <VisuallyHidden role="status" aria-live="polite">
        {plural(flat.length, "command")}
      </VisuallyHidden>
      <footer className={classes.footer}>
        <span>
          <Kbd size="xs">↑</Kbd> <Kbd size="xs">↓</Kbd> choose
        </span>
        <span>
          <Kbd size="xs">Enter</Kbd> go or open
        </span>
        <span>
          <Kbd size="xs">Esc</Kbd> close
        </span>
      </footer>
    </div>
  );
}
