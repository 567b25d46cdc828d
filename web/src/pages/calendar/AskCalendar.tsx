import { Button, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, read } from "../../api/client";
import { serverNow } from "../../format/clock";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { GatedButton } from "../../ui/GatedButton";
import { Panel } from "../../ui/Panel";
import { Problem } from "../../ui/Problem";
import { words } from "../../ui/tones";
import type { Catalogue } from "../changes/guard";
import { Answer } from "./Answer";
import classes from "./AskCalendar.module.css";
import { type Asked, durations, kinds, localInput, previewRequest } from "./ask";

type Props = {
  catalogue: Catalogue | undefined;
  /** What the calendar is filtered by, to begin with. */
  service: string | undefined;
  environment: string | undefined;
};

/** "Can I change this now?": asks and promises nothing. */
export function AskCalendar({ catalogue, service, environment }: Props) {
  const blocked = whyNot(useMe(), "responder");
  const services = (catalogue?.services ?? []).map(({ name }) => name).sort();
  const environments = (catalogue?.environments ?? []).map(({ name }) => name).sort();
  const [draft, setDraft] = useState<Partial<Asked>>({});
  const asked: Asked = {
    service: draft.service ?? service ?? services[0] ?? "",
    environment: draft.environment ?? environment ?? environments[0] ?? "",
    kind: draft.kind ?? "deploy",
    duration: draft.duration ?? "30m",
    start: draft.start ?? "",
  };
  const ask = useMutation({
    mutationFn: async (wanted: Asked) => {
      const request = previewRequest(wanted);
      const decision = await read(api.POST("/api/v1/changes/check", { body: request }));
      // Where no start was given it began when it was asked.
      return { wanted, start: request.start ?? new Date(serverNow()).toISOString(), decision };
    },
  });
  const set = (change: Partial<Asked>) => setDraft((old) => ({ ...old, ...change }));

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!blocked && !ask.isPending) ask.mutate(asked);
  }

  function askFor(start: string): void {
    const next = { ...asked, start: localInput(start) };
    set(next);
    ask.mutate(next);
  }

  return (
    <Panel title="Ask the calendar" hint="Reads only; reserves nothing" testid="ask">
      <form onSubmit={submit}>
        <Stack gap="sm">
          <div className={classes.fields}>
            <Choice
              label="Service"
              value={asked.service}
              values={services}
              onChange={(value) => set({ service: value })}
            />
            <Choice
              label="Environment"
              value={asked.environment}
              values={environments}
              onChange={(value) => set({ environment: value })}
            />
            <NativeSelect
              label="Kind"
              value={asked.kind}
              onChange={(event) => set({ kind: event.currentTarget.value as Asked["kind"] })}
              data={kinds.map((kind) => ({ value: kind, label: words(kind) }))}
            />
            <NativeSelect
              label="For how long"
              value={asked.duration}
              onChange={(event) => set({ duration: event.currentTarget.value })}
              data={durations}
            />
            <TextInput
              type="datetime-local"
              label="Start (local time)"
              description="Now when left empty"
              inputWrapperOrder={["label", "input", "description"]}
              value={asked.start}
              onChange={(event) => set({ start: event.currentTarget.value })}
            />
          </div>
          <div className={classes.buttons}>
            {asked.start && (
              <Button variant="default" onClick={() => set({ start: "" })}>
                Now instead
              </Button>
            )}
            <GatedButton
              type="submit"
              blocked={blocked ?? (asked.service ? undefined : "The catalogue is empty.")}
              loading={ask.isPending}
              data-testid="ask-calendar"
            >
              May it go ahead?
            </GatedButton>
          </div>
        </Stack>
      </form>
      <div aria-live="polite">
        {ask.error && <Problem error={ask.error} />}
        {ask.data && catalogue ? (
          <Answer asked={ask.data} catalogue={catalogue} onAskFor={askFor} />
        ) : (
          !ask.error && (
            <Text size="sm" c="var(--hf-muted)" mt={8}>
              Pipelines ask the same question before each deploy.
            </Text>
          )
        )}
      </div>
    </Panel>
  );
}

function Choice(props: {
  label: string;
  value: string;
  values: string[];
  onChange: (value: string) => void;
}) {
  const { label, value, values, onChange } = props;
  return (
    <NativeSelect
      label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      data={values}
    />
  );
}
