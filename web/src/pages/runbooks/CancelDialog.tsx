import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import type { RunbookRun } from "../../api/types";
import { plural } from "../../format/number";
import { useAnnounce } from "../../ui/announce";
import { Problem } from "../../ui/Problem";
import { useCancelRunbook } from "./useAnswer";

/** Says what stays before a run is cancelled. */
export function CancelDialog({
  run,
  onClose,
}: {
  run: RunbookRun | undefined;
  onClose: () => void;
}) {
  return (
    <Modal
      opened={run !== undefined}
      onClose={onClose}
      title="Cancel this run?"
      closeButtonProps={{ "aria-label": "Close without cancelling" }}
    >
      {run && <Body run={run} onClose={onClose} />}
    </Modal>
  );
}

function Body({ run, onClose }: { run: RunbookRun; onClose: () => void }) {
  const announce = useAnnounce();
  const cancel = useCancelRunbook(run.id);
  const actions = run.steps.filter((state) => state.action_run).length;

  function confirm(): void {
    if (cancel.isPending) return;
    cancel.mutate(undefined, {
      onSuccess: () => {
        announce(`Cancelled: ${run.title}`);
        onClose();
      },
    });
  }

  return (
    <Stack>
      <Text size="sm">
        No further step runs.{" "}
        {actions > 0
          ? `It has run ${plural(actions, "action")}: their leases stay in force until they end or are reverted one by one.`
          : "It has run no action, so nothing is left behind."}
      </Text>
      {cancel.error && <Problem error={cancel.error} />}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onClose} data-autofocus>
          Go on
        </Button>
        <Button
          color="red.9"
          onClick={confirm}
          loading={cancel.isPending}
          data-testid="confirm-cancel"
        >
          Cancel the run
        </Button>
      </Group>
    </Stack>
  );
}
