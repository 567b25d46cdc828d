import {
  IconAlertTriangle,
  IconCircle,
  IconCircleCheck,
  IconCircleX,
  IconHandStop,
  IconHourglass,
  IconPlayerPlay,
  IconPlayerSkipForward,
  IconQuestionMark,
} from "@tabler/icons-react";
import type { RunbookRun } from "../../api/types";
import { Tag, type Tone } from "../../ui/Tag";
import type { Verdict } from "./criterion";
import type { StepState } from "./types";

type Look = { tone: Tone; text: string; Icon: typeof IconCircle };

const runLooks: Record<RunbookRun["status"], Look> = {
  running: { tone: "info", text: "running", Icon: IconPlayerPlay },
  waiting: { tone: "warning", text: "waits for a person", Icon: IconHourglass },
  succeeded: { tone: "good", text: "succeeded", Icon: IconCircleCheck },
  failed: { tone: "bad", text: "failed", Icon: IconCircleX },
  cancelled: { tone: "neutral", text: "cancelled", Icon: IconHandStop },
};

export function RunbookStatusTag({ status }: { status: RunbookRun["status"] }) {
  return <LookTag look={runLooks[status] ?? runLooks.running} />;
}

const stepLooks: Record<StepState["status"], Look> = {
  pending: { tone: "neutral", text: "to come", Icon: IconCircle },
  asking: { tone: "warning", text: "asks", Icon: IconQuestionMark },
  running: { tone: "info", text: "running", Icon: IconPlayerPlay },
  passed: { tone: "good", text: "passed", Icon: IconCircleCheck },
  failed: { tone: "bad", text: "failed", Icon: IconCircleX },
  inconclusive: { tone: "warning", text: "inconclusive", Icon: IconAlertTriangle },
  skipped: { tone: "neutral", text: "skipped", Icon: IconPlayerSkipForward },
};

/** How a step stands; `over` is whether its run has ended, so that nothing is to come. */
export function StepStatusTag({ status, over }: { status: StepState["status"]; over: boolean }) {
  const look = stepLooks[status] ?? stepLooks.pending;
  return <LookTag look={over && status === "pending" ? { ...look, text: "not reached" } : look} />;
}

const verdictLooks: Record<Verdict, Look> = {
  pass: { tone: "good", text: "holds", Icon: IconCircleCheck },
  fail: { tone: "bad", text: "does not hold", Icon: IconCircleX },
  no_data: { tone: "warning", text: "no data", Icon: IconAlertTriangle },
};

export function VerdictTag({ verdict }: { verdict: Verdict }) {
  return <LookTag look={verdictLooks[verdict]} />;
}

function LookTag({ look: { tone, text, Icon } }: { look: Look }) {
  return (
    <Tag tone={tone} icon={<Icon size={14} aria-hidden />}>
      {text}
    </Tag>
  );
}
