import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { actionsQuery, planQuery } from "../../api/queries";
import type { ActionSpec, RunbookStep } from "../../api/types";
import { GatedButton } from "../../ui/GatedButton";
import { Loaded } from "../../ui/Panel";
import { Problem } from "../../ui/Problem";
import { PlanView } from "../actions/PlanView";
import { draftOf, valuesOf } from "../actions/params";

type Props = {
  /** The action step to plan; undefined while closed. */
  step: RunbookStep | undefined;
  pending: boolean;
  /** Why the last confirmation was refused. */
  refusal: ReactNode;
  onConfirm: () => void;
  onClose: () => void;
};

/** The plan of an action step, before it is pressed. Nothing happens before it is confirmed. */
export function PlanDialog({ step, ...rest }: Props) {
  const specs = useQuery(actionsQuery);
  return (
    <Modal
      opened={step !== undefined}
      onClose={rest.onClose}
      title={step?.title ?? "Plan"}
      size="lg"
      closeButtonProps={{ "aria-label": "Close without running anything" }}
      closeOnClickOutside={false}
    >
      {step && (
        <Loaded query={specs} rows={3}>
          {({ items }) => {
            const spec = items.find(({ name }) => name === step.action);
            if (!spec) {
              return (
                <Text c="var(--hf-bad-text)">
                  This server has no action named {step.action} any more.
                </Text>
              );
            }
            return <Body step={step} spec={spec} {...rest} />;
          }}
        </Loaded>
      )}
    </Modal>
  );
}

function Body(props: Omit<Props, "step"> & { step: RunbookStep; spec: ActionSpec }) {
  const { step, spec, pending, refusal, onConfirm, onClose } = props;
  const values = valuesOf(spec, draftOf(spec, step.params ?? {}));
  const plan = useQuery({
    ...planQuery(spec.name, values ?? {}, step.ttl ?? ""),
    enabled: values !== undefined,
  });
  const blocked =
    values === undefined
      ? "The step's parameters do not fit the action."
      : plan.error
        ? "There is no plan to confirm."
        : plan.data === undefined
          ? "The plan is being made."
          : plan.data.leased.length > 0
            ? "It would be refused: somebody holds what it changes."
            : undefined;
  return (
    <Stack gap="md">
      <Text size="sm">{spec.summary}</Text>
      <section aria-label="Plan" aria-live="polite" aria-busy={plan.isFetching} data-testid="plan">
        {values === undefined ? (
          <Text size="sm" c="var(--hf-bad-text)">
            The parameters of this step do not fit the action {spec.title} of this server.
          </Text>
        ) : plan.error ? (
          <Problem error={plan.error} onRetry={() => void plan.refetch()} />
        ) : (
          <Loaded query={plan} rows={3}>
            {(data) => <PlanView plan={data} />}
          </Loaded>
        )}
      </section>
      {refusal}
      <Group justify="flex-end" gap="xs">
        {plan.data && plan.data.leased.length > 0 && (
          <Button
            variant="default"
            loading={plan.isFetching}
            onClick={() => void plan.refetch()}
            data-testid="plan-again"
          >
            Plan again
          </Button>
        )}
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <GatedButton
          {...(spec.dangerous && { color: "red.9" })}
          loading={pending}
          blocked={blocked}
          onClick={onConfirm}
          data-testid="confirm-step"
        >
          {spec.title}
        </GatedButton>
      </Group>
    </Stack>
  );
}
