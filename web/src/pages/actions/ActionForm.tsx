import { NativeSelect, Stack, Text, Textarea } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { statusOf } from "../../api/problem";
import { planQuery } from "../../api/queries";
import type { ActionSpec } from "../../api/types";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { useAnnounce } from "../../ui/announce";
import { GatedButton } from "../../ui/GatedButton";
import { Loaded } from "../../ui/Panel";
import { Problem } from "../../ui/Problem";
import classes from "./ActionForm.module.css";
import { defaultLease, leaseChoices } from "./leaseChoices";
import { ParamField } from "./ParamField";
import { PlanView } from "./PlanView";
import { type Draft, draftOf, valuesOf } from "./params";
import { useRunAction } from "./useRunAction";

const settleMs = 300;

type Props = {
  spec: ActionSpec;
  suggested: Record<string, unknown>;
  why: string | undefined;
  incident: string | undefined;
  onClose: () => void;
};

/** Parameters, their plan, a reason, and the button that confirms that very plan. */
export function ActionForm({ spec, suggested, why, incident, onClose }: Props) {
  const me = useMe();
  const announce = useAnnounce();
  const choices = leaseChoices(spec.default_ttl, spec.max_ttl);
  const [draft, setDraft] = useState<Draft>(() => draftOf(spec, suggested));
  const [ttl, setTtl] = useState(() => defaultLease(spec.default_ttl, choices));
  const [reason, setReason] = useState("");
  const [asked, setAsked] = useState(false);
  const reasonField = useRef<HTMLTextAreaElement>(null);

  const [settled] = useDebouncedValue(draft, settleMs);
  const values = valuesOf(spec, settled);
  const plan = useQuery({
    ...planQuery(spec.name, values ?? {}, ttl),
    enabled: values !== undefined,
  });
  const run = useRunAction(spec.name, (accepted) => {
    announce(`Accepted: ${accepted.summary || accepted.title}`);
    onClose();
  });

  // With everything filled in, the reason is what is missing.
  const complete = valuesOf(spec, draft) !== undefined;
  const startAtReason = useRef(complete);
  useEffect(() => {
    if (startAtReason.current) reasonField.current?.focus();
  }, []);

  const fresh = settled === draft && plan.data !== undefined && !plan.isFetching;
  const reasonMissing = reason.trim() === "";
  const blocked =
    whyNot(me, spec.role) ??
    (complete ? undefined : "Fill in the parameters first.") ??
    (plan.error ? "There is no plan to confirm." : undefined) ??
    (fresh ? undefined : "The plan is being made.") ??
    (plan.data?.leased.length
      ? "Somebody holds this already: revert that lease first."
      : undefined);

  function submit(event: FormEvent): void {
    event.preventDefault();
    setAsked(true);
    if (blocked || run.isPending || !plan.data || !values) return;
    if (reasonMissing) {
      reasonField.current?.focus();
      return;
    }
    run.mutate(
      { plan: plan.data, params: values, ttl, reason: reason.trim(), incident },
      {
        onError: (error) => {
          // The plan that was read is no longer the truth; show the one that is.
          if (statusOf(error) === 409) void plan.refetch();
        },
      },
    );
  }

  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="md">
        <div>
          <Text size="sm">{spec.summary}</Text>
          {why && (
            <Text size="sm" c="var(--hf-muted)" mt={4}>
              Why suggested: {why}
            </Text>
          )}
        </div>
        <div className={classes.fields}>
          {spec.params.map((param) => (
            <ParamField
              key={param.name}
              param={param}
              value={draft[param.name] ?? ""}
              onChange={(value) => setDraft((old) => ({ ...old, [param.name]: value }))}
            />
          ))}
          {choices.length > 0 && (
            <NativeSelect
              label="For how long"
              description="It ends by itself; renew or revert at any time."
              value={ttl}
              onChange={(event) => setTtl(event.currentTarget.value)}
              data={choices}
            />
          )}
        </div>
        <section
          aria-label="Plan"
          aria-live="polite"
          aria-busy={plan.isFetching}
          data-testid="plan"
        >
          {values === undefined ? (
            <Text size="sm" c="var(--hf-muted)">
              The plan appears here once the parameters are filled in. Nothing happens before you
              confirm.
            </Text>
          ) : plan.error ? (
            <Problem error={plan.error} onRetry={() => void plan.refetch()} />
          ) : (
            <Loaded query={plan} rows={3}>
              {(data) => <PlanView plan={data} />}
            </Loaded>
          )}
        </section>
        <Textarea
          ref={reasonField}
          label="Reason"
          description="Others read it in the incident, in Slack and in the audit."
          required
          autosize
          minRows={2}
          maxLength={500}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
          error={asked && reasonMissing ? "A reason is needed: one line is enough." : undefined}
        />
        {run.error && <Problem error={run.error} />}
        <div className={classes.buttons}>
          <GatedButton variant="default" onClick={onClose}>
            Cancel
          </GatedButton>
          <GatedButton
            type="submit"
            {...(spec.dangerous && { color: "red.9" })}
            loading={run.isPending}
            blocked={blocked}
            data-testid="confirm-action"
          >
            {spec.title}
          </GatedButton>
        </div>
      </Stack>
    </form>
  );
}
