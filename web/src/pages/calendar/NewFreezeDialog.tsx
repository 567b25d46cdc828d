import { Button, Modal, MultiSelect, Stack, Textarea, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { activeChangesQuery } from "../../api/queries";
import { serverNow } from "../../format/clock";
import { useAnnounce } from "../../ui/announce";
import { GatedButton } from "../../ui/GatedButton";
import { Problem } from "../../ui/Problem";
import { words } from "../../ui/tones";
import formClasses from "../actions/ActionForm.module.css";
import { scope } from "../changes/CalendarPanel";
import type { Catalogue } from "../changes/guard";
import { kinds } from "./ask";
import classes from "./FreezesPanel.module.css";
import { effectText, type FreezeDraft, freezeError, freezeOf } from "./freezeDraft";
import { useCreateFreeze } from "./useFreeze";

const empty: FreezeDraft = {
  reason: "",
  services: [],
  environments: [],
  kinds: [],
  start: "",
  end: "",
};

/** What is frozen, from when to when and why; it says what that denies before it does. */
export function NewFreezeDialog(props: { catalogue: Catalogue; onClose: () => void }) {
  const { catalogue, onClose } = props;
  const announce = useAnnounce();
  const [draft, setDraft] = useState(empty);
  const [asked, setAsked] = useState(false);
  const create = useCreateFreeze();
  const active = useQuery(activeChangesQuery).data?.items ?? [];
  const now = serverNow();
  const wrong = freezeError(draft, now);
  const set = (change: Partial<FreezeDraft>) => setDraft((old) => ({ ...old, ...change }));
  const names = (list: { name: string }[]) => list.map(({ name }) => name).sort();

  function submit(event: FormEvent): void {
    event.preventDefault();
    setAsked(true);
    if (wrong || create.isPending) return;
    create.mutate(freezeOf(draft, serverNow()), {
      onSuccess: (freeze) => {
        announce(`Frozen: ${scope(freeze)}`);
        onClose();
      },
    });
  }

  return (
    <Modal
      opened
      onClose={onClose}
      title="New freeze"
      size="lg"
      closeButtonProps={{ "aria-label": "Close without freezing" }}
      closeOnClickOutside={false}
    >
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          <Textarea
            label="Reason"
            description="Everybody whose change is denied reads it."
            required
            autosize
            minRows={2}
            maxLength={500}
            value={draft.reason}
            onChange={(event) => set({ reason: event.currentTarget.value })}
            error={asked && draft.reason.trim() === "" ? "A reason is needed." : undefined}
            data-autofocus
          />
          <MultiSelect
            label="Services"
            placeholder={draft.services.length === 0 ? "Every service" : ""}
            data={names(catalogue.services)}
            value={draft.services}
            onChange={(services) => set({ services })}
          />
          <MultiSelect
            label="Environments"
            placeholder={draft.environments.length === 0 ? "Every environment" : ""}
            data={names(catalogue.environments)}
            value={draft.environments}
            onChange={(environments) => set({ environments })}
          />
          <MultiSelect
            label="Kinds of change"
            placeholder={draft.kinds.length === 0 ? "Every kind that can be frozen" : ""}
            data={kinds
              .filter((kind) => kind !== "rollback")
              .map((kind) => ({ value: kind, label: words(kind) }))}
            value={draft.kinds}
            onChange={(value) => set({ kinds: value as FreezeDraft["kinds"] })}
          />
          <div className={classes.times}>
            <TextInput
              type="datetime-local"
              label="From (local time)"
              description="Now when left empty"
              value={draft.start}
              onChange={(event) => set({ start: event.currentTarget.value })}
            />
            <TextInput
              type="datetime-local"
              label="Until (local time)"
              description="Until lifted when left empty"
              value={draft.end}
              onChange={(event) => set({ end: event.currentTarget.value })}
              error={draft.end ? freezeError({ ...draft, reason: "x" }, now) : undefined}
            />
          </div>
          <div className={classes.effect} role="status" aria-live="polite">
            {effectText(draft, active, now)}
          </div>
          {create.error && <Problem error={create.error} />}
          <div className={formClasses.buttons}>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <GatedButton type="submit" loading={create.isPending} data-testid="confirm-freeze">
              Freeze
            </GatedButton>
          </div>
        </Stack>
      </form>
    </Modal>
  );
}
