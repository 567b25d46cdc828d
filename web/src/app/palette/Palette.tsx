import { Modal } from "@mantine/core";
import { useState } from "react";
import type { ActionRun } from "../../api/types";
import { ActionDialog, type Wanted } from "../../pages/actions/ActionDialog";
import { StartRunbookDialog } from "../../pages/runbooks/StartRunbookDialog";
import { RevertDialog } from "../../pages/runs/RevertDialog";
import { CommandList } from "./CommandList";
import classes from "./Palette.module.css";

/** What a command opens instead of doing it at once: nothing in production moves without a plan. */
export type Dialogs = {
  action: (wanted: Wanted) => void;
  runbook: (id: string) => void;
  revert: (run: ActionRun) => void;
};

/** The command palette and the dialogs that it leads to. */
export function Palette({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const [action, setAction] = useState<Wanted>();
  const [runbook, setRunbook] = useState<string>();
  const [reverting, setReverting] = useState<ActionRun>();
  return (
    <>
      <Modal
        opened={opened}
        onClose={onClose}
        withCloseButton={false}
        centered={false}
        yOffset="12vh"
        size={640}
        padding={0}
        attributes={{ content: { "aria-label": "Command palette" } }}
        classNames={{ content: classes.content ?? "" }}
      >
        <CommandList
          onClose={onClose}
          dialogs={{ action: setAction, runbook: setRunbook, revert: setReverting }}
        />
      </Modal>
      <ActionDialog wanted={action} onClose={() => setAction(undefined)} />
      {runbook && <StartRunbookDialog runbook={runbook} onClose={() => setRunbook(undefined)} />}
      <RevertDialog run={reverting} onClose={() => setReverting(undefined)} />
    </>
  );
}
