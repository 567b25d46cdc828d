import { Modal, NativeSelect, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useRef, useState } from "react";
import { api, read } from "../../api/client";
import { keys, runbookRunQuery, runbooksQuery } from "../../api/queries";
import type { Runbook } from "../../api/types";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { useAnnounce } from "../../ui/announce";
import { GatedButton } from "../../ui/GatedButton";
import { Loaded } from "../../ui/Panel";
import { Problem } from "../../ui/Problem";
import formClasses from "../actions/ActionForm.module.css";
import { DialogKey } from "../actions/key";
import { ParamField } from "../actions/ParamField";
import type { Draft } from "../actions/params";
import { ComingSteps } from "./ComingSteps";
import { asField, draftOf, valuesOf } from "./params";

type Props = {
  /** Which one to start; undefined lets the person choose. */
  runbook?: string | undefined;
  /** What an alert's labels fill in. */
  params?: Record<string, string> | undefined;
  incident?: string | undefined;
  onClose: () => void;
};

/** Parameters, the steps that will come, and the button that starts them. Mounted anew for each start. */
export function StartRunbookDialog({ runbook, params, incident, onClose }: Props) {
  const runbooks = useQuery(runbooksQuery);
  const [id, setId] = useState(runbook ?? "");
  const chosen = runbooks.data?.items.find((item) => item.id === id);
  return (
    <Modal
      opened
      onClose={onClose}
      title={chosen ? `Start: ${chosen.title}` : "Start a runbook"}
      size="lg"
      closeButtonProps={{ "aria-label": "Close without starting" }}
      // A click beside the dialog must not throw away what is being typed.
      closeOnClickOutside={false}
    >
      <Loaded query={runbooks} rows={4}>
        {({ items }) => (
          <Stack>
            {!runbook && (
              <NativeSelect
                label="Runbook"
                value={id}
                onChange={(event) => setId(event.currentTarget.value)}
                data={[
                  { value: "", label: "Choose…", disabled: true },
                  ...items.map((item) => ({ value: item.id, label: item.title })),
                ]}
                data-autofocus
              />
            )}
            {runbook && !chosen && (
              <Text c="var(--hf-bad-text)">
                This server has no runbook named {runbook} any more.
              </Text>
            )}
            {chosen && (
              <StartForm
                key={chosen.id}
                runbook={chosen}
                suggested={params ?? {}}
                incident={incident}
                onClose={onClose}
              />
            )}
          </Stack>
        )}
      </Loaded>
    </Modal>
  );
}

function StartForm(props: {
  runbook: Runbook;
  suggested: Record<string, string>;
  incident: string | undefined;
  onClose: () => void;
}) {
  const { runbook, suggested, incident, onClose } = props;
  const me = useMe();
  const announce = useAnnounce();
  const navigate = useNavigate();
  const [draft, setDraft] = useState<Draft>(() => draftOf(runbook, suggested));
  const start = useStartRunbook();
  const values = valuesOf(runbook, draft);
  const blocked = whyNot(me, "responder") ?? (values ? undefined : "Fill in the parameters first.");

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (blocked || start.isPending || !values) return;
    start.mutate(
      { runbook: runbook.id, params: values, incident },
      {
        onSuccess: (run) => {
          announce(`Started: ${run.title}`);
          onClose();
          void navigate({ to: "/runbooks/runs/$id", params: { id: run.id } });
        },
      },
    );
  }

  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="md">
        <Text size="sm">{runbook.summary}</Text>
        {runbook.params.length > 0 && (
          <div className={formClasses.fields}>
            {runbook.params.map((param) => (
              <ParamField
                key={param.name}
                param={asField(param)}
                value={draft[param.name] ?? ""}
                onChange={(value) => setDraft((old) => ({ ...old, [param.name]: value }))}
              />
            ))}
          </div>
        )}
        <ComingSteps steps={runbook.steps} values={draft} />
        {start.error && <Problem error={start.error} />}
        <div className={formClasses.buttons}>
          <GatedButton variant="default" onClick={onClose}>
            Cancel
          </GatedButton>
          <GatedButton
            type="submit"
            loading={start.isPending}
            blocked={blocked}
            data-testid="confirm-start"
          >
            Start runbook
          </GatedButton>
        </div>
      </Stack>
    </form>
  );
}

type Wanted = { runbook: string; params: Record<string, string>; incident: string | undefined };

/** Starts once for what the dialog holds: a double click or a retry after a lost answer is one run. */
function useStartRunbook() {
  const queries = useQueryClient();
  const key = useRef(new DialogKey());
  return useMutation({
    mutationFn: ({ runbook, params, incident }: Wanted) =>
      read(
        api.POST("/api/v1/runbook-runs", {
          params: {
            header: { "Idempotency-Key": key.current.for(JSON.stringify([runbook, params])) },
          },
          body: { runbook, params, ...(incident && { incident }) },
        }),
      ),
    onSuccess: (run) => {
      queries.setQueryData(runbookRunQuery(run.id).queryKey, run);
      for (const queryKey of [keys.runbookRuns, keys.incidents]) {
        void queries.invalidateQueries({ queryKey });
      }
    },
  });
}
