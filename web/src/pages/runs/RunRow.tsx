import { Text } from "@mantine/core";
import { IconArrowBackUp } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { ActionRun } from "../../api/types";
import { plural } from "../../format/number";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { Countdown } from "../../ui/Countdown";
import { GatedButton } from "../../ui/GatedButton";
import { Problem } from "../../ui/Problem";
import { Tag } from "../../ui/Tag";
import { Ago, Time } from "../../ui/Time";
import { RunStatusTag, VerificationTag, words } from "../../ui/tones";
import { RenewMenu } from "./RenewMenu";
import classes from "./RunRow.module.css";
import { useActionRole } from "./useControl";

export function isLive(run: ActionRun): boolean {
  return run.status === "accepted" || run.status === "executing" || run.status === "active";
}

type Props = {
  run: ActionRun;
  onRevert: (run: ActionRun) => void;
  /** Whether to lead to the run's incident; not on the incident's own page. */
  linkIncident?: boolean;
};

/** One action run: what, who, why, how long still, whether it helped, and the way back. */
export function RunRow({ run, onRevert, linkIncident }: Props) {
  const live = isLive(run);
  return (
    <li className={classes.row} data-testid="run" data-status={run.status}>
      <div className={classes.main}>
        <Text fw={600} size="sm" className={classes.title}>
          {run.summary || run.title}
        </Text>
        <div className={classes.tags}>
          <RunStatusTag status={run.status} />
          {run.status === "active" && <VerificationTag verification={run.verification} />}
          <Missing run={run} />
        </div>
        <Text size="sm" c="var(--hf-muted)" className={classes.meta}>
          {run.requester}
          {run.reason && <>: “{run.reason}”</>}
        </Text>
        <Text size="xs" c="var(--hf-muted)">
          <Progress run={run} />
          {linkIncident && run.incident && (
            <>
              {" · "}
              <Link to="/incidents/$id" params={{ id: run.incident }} className={classes.link}>
                its incident
              </Link>
            </>
          )}
        </Text>
      </div>
      {live && (
        <div className={classes.side}>
          {run.expires_at && <Countdown from={run.accepted_at} until={run.expires_at} />}
          <Controls run={run} onRevert={onRevert} />
        </div>
      )}
    </li>
  );
}

function Controls({ run, onRevert }: { run: ActionRun; onRevert: (run: ActionRun) => void }) {
  const blocked = whyNot(useMe(), useActionRole(run.action));
  const [error, setError] = useState<unknown>();
  return (
    <>
      <div className={classes.buttons}>
        <RenewMenu
          run={run}
          blocked={blocked ?? (run.status === "active" ? undefined : "It is not in force yet.")}
          onError={setError}
        />
        <GatedButton
          size="xs"
          variant="light"
          leftSection={<IconArrowBackUp size={16} aria-hidden />}
          blocked={blocked}
          onClick={() => onRevert(run)}
          aria-label={`Revert ${run.summary || run.title}`}
          data-testid="revert"
        >
          Revert
        </GatedButton>
      </div>
      {error !== undefined && <Problem error={error} />}
    </>
  );
}

function Missing({ run }: { run: ActionRun }) {
  if (run.missing.length === 0 || run.status === "ended" || run.status === "failed") return null;
  const names = run.missing.join(", ");
  return (
    <Tag tone="warning" title={`Not acknowledged by: ${names}`}>
      {run.missing.length <= 2
        ? `missing: ${names}`
        : `${plural(run.missing.length, "gateway")} missing`}
    </Tag>
  );
}

function Progress({ run }: { run: ActionRun }) {
  if (run.ended_at) {
    return (
      <>
        {words(run.end_reason ?? "ended")}
        {run.ended_by && ` by ${run.ended_by}`} <Time at={run.ended_at} />
        {run.end_detail && `: ${run.end_detail}`}
      </>
    );
  }
  if (run.enforced_at) {
    return (
      <>
        in force since <Time at={run.enforced_at} />
        {run.revision !== undefined && `, revision ${run.revision}`}
      </>
    );
  }
  return (
    <>
      accepted <Ago at={run.accepted_at} />
    </>
  );
}
