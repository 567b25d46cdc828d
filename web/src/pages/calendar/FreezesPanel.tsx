import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { IconSnowflake } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { freezesQuery } from "../../api/queries";
import type { Freeze } from "../../api/types";
import { serverNow } from "../../format/clock";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { useAnnounce } from "../../ui/announce";
import { GatedButton } from "../../ui/GatedButton";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { Problem } from "../../ui/Problem";
import { Tag } from "../../ui/Tag";
import { Time } from "../../ui/Time";
import { scope } from "../changes/CalendarPanel";
import type { Catalogue } from "../changes/guard";
import classes from "./FreezesPanel.module.css";
import { NewFreezeDialog } from "./NewFreezeDialog";
import { useLiftFreeze } from "./useFreeze";

/** Freezes in force or to come; approvers create and lift them. */
export function FreezesPanel({ catalogue }: { catalogue: Catalogue | undefined }) {
  const blocked = whyNot(useMe(), "approver");
  const freezes = useQuery(freezesQuery);
  const [creating, setCreating] = useState(false);
  const [lifting, setLifting] = useState<Freeze>();
  return (
    <Panel title="Freezes" hint="Those in force or to come" testid="freezes">
      <Loaded query={freezes} rows={1}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconSnowflake size={22} />} title="Nothing is frozen">
              A freeze denies forward changes in a window; rollbacks and emergency actions stay
              free.
            </Empty>
          ) : (
            <ul className="hf-list">
              {items.map((freeze) => (
                <li key={freeze.id} className={classes.row} data-testid="freeze">
                  <div className={classes.main}>
                    <Text size="sm" fw={600}>
                      {scope(freeze)}
                    </Text>
                    <Text size="sm">“{freeze.reason}”</Text>
                    <Text size="xs" c="var(--hf-muted)">
                      {freeze.created_by}, from <Time at={freeze.start} />{" "}
                      {freeze.end ? (
                        <>
                          until <Time at={freeze.end} />
                        </>
                      ) : (
                        "until lifted"
                      )}
                    </Text>
                  </div>
                  <div className={classes.side}>
                    <InForce freeze={freeze} />
                    <GatedButton
                      size="xs"
                      variant="default"
                      blocked={blocked}
                      onClick={() => setLifting(freeze)}
                      aria-label={`Lift the freeze: ${freeze.reason}`}
                    >
                      Lift…
                    </GatedButton>
                  </div>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      <GatedButton
        variant="light"
        size="xs"
        mt={8}
        leftSection={<IconSnowflake size={16} aria-hidden />}
        blocked={blocked ?? (catalogue ? undefined : "The catalogue is not read yet.")}
        onClick={() => setCreating(true)}
        data-testid="new-freeze"
      >
        New freeze…
      </GatedButton>
      {creating && catalogue && (
        <NewFreezeDialog catalogue={catalogue} onClose={() => setCreating(false)} />
      )}
      <LiftDialog freeze={lifting} onClose={() => setLifting(undefined)} />
    </Panel>
  );
}

function InForce({ freeze }: { freeze: Freeze }) {
  const now = Date.parse(freeze.start) <= serverNow();
  return <Tag tone={now ? "info" : "neutral"}>{now ? "in force" : "to come"}</Tag>;
}

function LiftDialog({ freeze, onClose }: { freeze: Freeze | undefined; onClose: () => void }) {
  return (
    <Modal
      opened={freeze !== undefined}
      onClose={onClose}
      title="Lift this freeze?"
      closeButtonProps={{ "aria-label": "Close without lifting" }}
    >
      {freeze && <LiftBody freeze={freeze} onClose={onClose} />}
    </Modal>
  );
}

function LiftBody({ freeze, onClose }: { freeze: Freeze; onClose: () => void }) {
  const announce = useAnnounce();
  const lift = useLiftFreeze();

  function confirm(): void {
    if (lift.isPending) return;
    lift.mutate(freeze.id, {
      onSuccess: () => {
        announce(`Lifted: ${freeze.reason}`);
        onClose();
      },
    });
  }

  return (
    <Stack>
      <Text size="sm">
        Changes of {scope(freeze)} may go ahead again at once. {freeze.created_by} froze it: “
        {freeze.reason}”.
      </Text>
      {lift.error && <Problem error={lift.error} />}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onClose} data-autofocus>
          Keep it
        </Button>
        <Button onClick={confirm} loading={lift.isPending} data-testid="confirm-lift">
          Lift the freeze
        </Button>
      </Group>
    </Stack>
  );
}
