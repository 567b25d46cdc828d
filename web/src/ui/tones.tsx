import {
  IconAlertOctagon,
  IconAlertTriangle,
  IconExclamationCircle,
  IconInfoCircle,
} from "@tabler/icons-react";
import type {
  ActionRun,
  Change,
  Gateway,
  Incident,
  Severity,
  SignalHealth,
  Verification,
} from "../api/types";
import { Tag, type Tone } from "./Tag";

const severities: Record<Severity, { tone: Tone; Icon: typeof IconInfoCircle }> = {
  critical: { tone: "critical", Icon: IconAlertOctagon },
  error: { tone: "bad", Icon: IconExclamationCircle },
  warning: { tone: "warning", Icon: IconAlertTriangle },
  info: { tone: "info", Icon: IconInfoCircle },
};

export function severityTone(severity: Severity): Tone {
  return severities[severity]?.tone ?? "neutral";
}

export function SeverityTag({ severity }: { severity: Severity }) {
  const { tone, Icon } = severities[severity] ?? severities.info;
  return (
    <Tag tone={tone} icon={<Icon size={14} aria-hidden />}>
      {severity}
    </Tag>
  );
}

const incidentTones: Record<Incident["status"], Tone> = {
  open: "bad",
  acknowledged: "info",
  resolved: "good",
};

export function IncidentStatusTag({ status }: { status: Incident["status"] }) {
  return <Tag tone={incidentTones[status] ?? "neutral"}>{status}</Tag>;
}

const runTones: Record<ActionRun["status"], Tone> = {
  accepted: "info",
  executing: "info",
  active: "good",
  reverting: "warning",
  ended: "neutral",
  failed: "bad",
};

export function RunStatusTag({ status }: { status: ActionRun["status"] }) {
  return <Tag tone={runTones[status] ?? "neutral"}>{status}</Tag>;
}

const verdicts: Record<Verification["verdict"], { tone: Tone; text: string }> = {
  verified: { tone: "good", text: "verified" },
  not_verified: { tone: "bad", text: "not verified" },
  inconclusive: { tone: "warning", text: "inconclusive" },
};

export function VerificationTag({ verification }: { verification: Verification | undefined }) {
  if (!verification) return <Tag tone="neutral">verifying</Tag>;
  const { tone, text } = verdicts[verification.verdict] ?? verdicts.inconclusive;
  return (
    <Tag tone={tone} title={verification.detail}>
      {text}
    </Tag>
  );
}

const gatewayTones: Record<Gateway["state"], Tone> = {
  live: "good",
  behind: "warning",
  rejected: "bad",
  stale: "critical",
};

export function GatewayStateTag({ state }: { state: Gateway["state"] }) {
  return <Tag tone={gatewayTones[state] ?? "neutral"}>{state}</Tag>;
}

const changeTones: Record<Change["status"], Tone> = {
  held: "warning",
  claimed: "info",
  running: "info",
  succeeded: "good",
  failed: "bad",
  rolled_back: "warning",
  overrun: "bad",
  cancelled: "neutral",
  rejected: "neutral",
  expired: "neutral",
};

export function ChangeStatusTag({ status }: { status: Change["status"] }) {
  return <Tag tone={changeTones[status] ?? "neutral"}>{words(status)}</Tag>;
}

const healths: Record<SignalHealth, { tone: Tone; text: string }> = {
  ok: { tone: "good", text: "healthy" },
  warning: { tone: "warning", text: "warning" },
  critical: { tone: "critical", text: "critical" },
  no_data: { tone: "neutral", text: "no data" },
};

/** Health of a service or signal. No data is neither good nor bad. */
export function HealthTag({ health }: { health: SignalHealth }) {
  const { tone, text } = healths[health] ?? healths.no_data;
  return <Tag tone={tone}>{text}</Tag>;
}

export function healthTone(health: SignalHealth): Tone {
  return healths[health]?.tone ?? "neutral";
}

const breakerTones: Record<string, Tone> = {
  closed: "good",
  open: "bad",
  half_open: "warning",
  forced_open: "bad",
  forced_closed: "warning",
};

export function breakerTone(state: string): Tone {
  return breakerTones[state] ?? "neutral";
}

/** "rolled back" of rolled_back. */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}
