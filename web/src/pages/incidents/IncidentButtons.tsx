import { Button, Checkbox, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../../api/client";
import { keys } from "../../api/queries";
import type { Incident } from "../../api/types";
import { plural } from "../../format/number";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { useAnnounce } from "../../ui/announce";
import { GatedButton } from "../../ui/GatedButton";
import { Problem } from "../../ui/Problem";
import classes from "./IncidentButtons.module.css";

/** Acknowledge and resolve. */
export function IncidentButtons({ incident }: { incident: Incident }) {
  const blocked = whyNot(useMe(), "responder");
  const announce = useAnnounce();
  const queries = useQueryClient();
  const [resolving, setResolving] = useState(false);
  const acknowledge = useMutation({
    mutationFn: () =>
      api.POST("/api/v1/incidents/{id}/acknowledge", { params: { path: { id: incident.id } } }),
    onSuccess: () => announce(`Incident #${incident.number} is yours`),
    onSettled: () => queries.invalidateQueries({ queryKey: keys.incidents }),
  });

  return (
    <div className={classes.root}>
      <Group gap="xs">
        {incident.status === "open" && (
          <GatedButton
            blocked={blocked}
            loading={acknowledge.isPending}
            onClick={() => !acknowledge.isPending && acknowledge.mutate()}
            data-testid="acknowledge"
          >
            Acknowledge
          </GatedButton>
        )}
        {incident.status !== "resolved" && (
          <GatedButton variant="default" blocked={blocked} onClick={() => setResolving(true)}>
            Resolve…
          </GatedButton>
        )}
      </Group>
      {acknowledge.error && <Problem error={acknowledge.error} />}
      <Modal
        opened={resolving}
        onClose={() => setResolving(false)}
        title={`Resolve incident #${incident.number}`}
        closeOnClickOutside={false}
        closeButtonProps={{ "aria-label": "Close without resolving" }}
      >
        <ResolveForm incident={incident} onClose={() => setResolving(false)} />
      </Modal>
    </div>
  );
}

function ResolveForm({ incident, onClose }: { incident: Incident; onClose: () => void }) {
  const announce = useAnnounce();
  const queries = useQueryClient();
  const [reason, setReason] = useState("");
  const [force, setForce] = useState(false);
  const firing = incident.firing > 0 || incident.truncated > 0;
  const resolve = useMutation({
    mutationFn: () =>
      api.POST("/api/v1/incidents/{id}/resolve", {
        params: { path: { id: incident.id } },
        body: { ...(force && { force }), ...(reason.trim() && { reason: reason.trim() }) },
      }),
    onSuccess: () => {
      announce(`Incident #${incident.number} is resolved`);
      onClose();
    },
    onSettled: () => queries.invalidateQueries({ queryKey: keys.incidents }),
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!resolve.isPending) resolve.mutate();
  }

  return (
    <form onSubmit={submit}>
      <Stack>
        {firing ? (
          <>
            <Text size="sm">
              {plural(incident.firing, "alert")} of this incident still fire. It resolves by itself
              when they end.
            </Text>
            <Checkbox
              checked={force}
              onChange={(event) => setForce(event.currentTarget.checked)}
              label="Resolve it although alerts still fire"
            />
          </>
        ) : (
          <Text size="sm">No alert of it fires any more.</Text>
        )}
        <Textarea
          label="Reason"
          required={firing}
          autosize
          minRows={2}
          maxLength={500}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        {resolve.error && <Problem error={resolve.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <GatedButton
            type="submit"
            loading={resolve.isPending}
            blocked={firing && !force ? "Alerts still fire." : undefined}
          >
            Resolve
          </GatedButton>
        </Group>
      </Stack>
    </form>
  );
}
