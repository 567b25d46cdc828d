import { IconCheck, IconX } from "@tabler/icons-react";
import type { Change } from "../../api/types";
import { whyNot, whyNotDecide } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { useAnnounce } from "../../ui/announce";
import { GatedButton } from "../../ui/GatedButton";
import { Problem } from "../../ui/Problem";
import classes from "./ChangeRow.module.css";
import { type Decision, useDecide } from "./useDecide";

/** Confirm or reject a held change: an approver who is not its requester. */
export function DecideButtons({ change }: { change: Change }) {
  const me = useMe();
  const announce = useAnnounce();
  const decide = useDecide();

  function ask(verdict: Decision["verdict"]): void {
    if (decide.isPending) return;
    decide.mutate(
      { change, verdict },
      {
        onSuccess: () =>
          announce(`${verdict === "confirm" ? "Confirmed" : "Rejected"}: ${change.service}`),
      },
    );
  }

  const busy = (verdict: Decision["verdict"]) =>
    decide.isPending && decide.variables?.verdict === verdict;
  return (
    <>
      <div className={classes.buttons}>
        <GatedButton
          size="xs"
          variant="default"
          leftSection={<IconX size={16} aria-hidden />}
          blocked={whyNot(me, "approver")}
          loading={busy("reject")}
          onClick={() => ask("reject")}
          aria-label={`Reject the change of ${change.service}`}
        >
          Reject
        </GatedButton>
        <GatedButton
          size="xs"
          leftSection={<IconCheck size={16} aria-hidden />}
          blocked={whyNotDecide(me, change.requester)}
          loading={busy("confirm")}
          onClick={() => ask("confirm")}
          aria-label={`Confirm the change of ${change.service}`}
        >
          Confirm
        </GatedButton>
      </div>
      {decide.error && <Problem error={decide.error} />}
    </>
  );
}
