import { Text, Textarea } from "@mantine/core";
import {
  IconBell,
  IconBolt,
  IconBook2,
  IconCalendarEvent,
  IconCheck,
  IconFlag,
  IconNote,
  IconRefreshAlert,
  IconUserCheck,
} from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../../api/client";
import { keys, timelineQuery } from "../../api/queries";
import type { TimelineEntry } from "../../api/types";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { useAnnounce } from "../../ui/announce";
import { GatedButton } from "../../ui/GatedButton";
import { Loaded, Panel } from "../../ui/Panel";
import { Problem } from "../../ui/Problem";
import { Time } from "../../ui/Time";
import classes from "./Timeline.module.css";

const icons: Record<TimelineEntry["kind"], typeof IconBell> = {
  opened: IconFlag,
  alert: IconBell,
  acknowledged: IconUserCheck,
  action: IconBolt,
  runbook: IconBook2,
  change: IconCalendarEvent,
  note: IconNote,
  resolved: IconCheck,
  reopened: IconRefreshAlert,
};

/** What happened, newest first, and a line to add what the machine cannot know. */
export function Timeline({ incident }: { incident: string }) {
  const timeline = useQuery(timelineQuery(incident));
  return (
    <Panel title="Timeline" hint="newest first" testid="timeline">
      <NoteForm incident={incident} />
      <Loaded query={timeline} rows={4}>
        {(entries) => (
          <ol className={classes.list}>
            {[...entries].reverse().map((entry) => (
              <Entry key={entry.id} entry={entry} />
            ))}
          </ol>
        )}
      </Loaded>
    </Panel>
  );
}

function Entry({ entry }: { entry: TimelineEntry }) {
  const Icon = icons[entry.kind] ?? IconNote;
  return (
    <li className={classes.entry} data-kind={entry.kind}>
      <span className={classes.icon}>
        <Icon size={15} aria-hidden />
      </span>
      <div className={classes.text}>
        <Text size="sm">{entry.text}</Text>
        <Text size="xs" c="var(--hf-muted)">
          <Time at={entry.at} />
          {entry.actor && ` · ${entry.actor}`}
        </Text>
      </div>
    </li>
  );
}

function NoteForm({ incident }: { incident: string }) {
  const blocked = whyNot(useMe(), "responder");
  const announce = useAnnounce();
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const add = useMutation({
    mutationFn: (note: string) =>
      api.POST("/api/v1/incidents/{id}/timeline", {
        params: { path: { id: incident } },
        body: { text: note },
      }),
    onSuccess: () => {
      setText("");
      announce("Note added");
    },
    onSettled: () => queries.invalidateQueries({ queryKey: [...keys.incidents, incident] }),
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    const note = text.trim();
    if (note && !add.isPending) add.mutate(note);
  }

  return (
    <form onSubmit={submit} className={classes.form}>
      <Textarea
        aria-label="Note"
        placeholder="What you see, what you try"
        autosize
        minRows={1}
        maxLength={4000}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        className={classes.note}
      />
      <GatedButton
        type="submit"
        variant="default"
        loading={add.isPending}
        blocked={blocked ?? (text.trim() ? undefined : "Write a note first.")}
      >
        Add note
      </GatedButton>
      {add.error && <Problem error={add.error} />}
    </form>
  );
}
