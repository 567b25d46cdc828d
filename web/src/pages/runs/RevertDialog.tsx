import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import type { ActionRun } from "../../api/types";
import { useAnnounce } from "../../ui/announce";
import { Problem } from "../../ui/Problem";
import { Diff } from "../actions/PlanView";
import { useRevert } from "./useControl";

/** Says what comes back before it does. Keeps its own copy of the run: the list behind it may move on. */
export function RevertDialog({
  run,
  onClose,
}: {
  run: ActionRun | undefined;
  onClose: () => void;
}) {
  return (
    <Modal
      opened={run !== undefined}
      onClose={onClose}
      title="Take it back?"
      closeButtonProps={{ "aria-label": "Close without reverting" }}
    >
      {run && <Body run={run} onClose={onClose} />}
    </Modal>
  );
}

function Body({ run, onClose }: { run: ActionRun; onClose: () => void }) {
  const announce = useAnnounce();
  const revert = useRevert();
  const back = (run.diff ?? []).map(({ path, before, after }) => ({
    path,
    before: after,
    after: before,
  }));

  function confirm(): void {
    if (revert.isPending) return;
    revert.mutate(run, {
      onSuccess: () => {
        announce(`Reverting: ${run.summary || run.title}`);
        onClose();
      },
    });
  }

  return (
    <Stack>
      <Text size="sm">
        {run.summary || run.title}: the lease ends now, and every gateway goes back to the policy
        without it. Base edits made meanwhile stay.
      </Text>
      {back.length > 0 && <Diff diff={back} />}
      {revert.error && <Problem error={revert.error} />}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onClose}>
          Keep it
        </Button>
        <Button
          onClick={confirm}
          loading={revert.isPending}
          data-autofocus
          data-testid="confirm-revert"
        >
          Revert
        </Button>
      </Group>
    </Stack>
  );
}
