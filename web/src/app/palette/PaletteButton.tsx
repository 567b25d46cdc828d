import { Button, Kbd } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { IconCommand } from "@tabler/icons-react";
import { lazy, Suspense, useState } from "react";
import classes from "./Palette.module.css";

// Most visits never open it.
const Palette = lazy(() => import("./Palette").then((module) => ({ default: module.Palette })));

const isApple = /Mac|iPhone|iPad/.test(globalThis.navigator?.userAgent ?? "");
/** How the shortcut is written on this machine. */
export const shortcutText = isApple ? "⌘ K" : "Ctrl K";

/** Opens the command palette, by click or by Ctrl-K (⌘-K), also out of a text field. */
export function PaletteButton() {
  const [opened, setOpened] = useState(false);
  const [wanted, setWanted] = useState(false);

  function open(): void {
    setWanted(true);
    setOpened(true);
  }

  useHotkeys([["mod+K", () => (opened ? setOpened(false) : open())]], []);
  return (
    <>
      <Button
        variant="default"
        size="compact-md"
        className={classes.button}
        leftSection={<IconCommand size={16} aria-hidden />}
        onClick={open}
        aria-haspopup="dialog"
        aria-keyshortcuts="Control+K Meta+K"
        data-testid="palette-button"
      >
        <span className={classes.buttonText}>
          Find or do… <Kbd size="xs">{shortcutText}</Kbd>
        </span>
      </Button>
      {wanted && (
        <Suspense fallback={null}>
          <Palette opened={opened} onClose={() => setOpened(false)} />
        </Suspense>
      )}
    </>
  );
}
