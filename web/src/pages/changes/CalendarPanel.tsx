import { Text } from "@mantine/core";
import { IconCalendarCheck, IconSnowflake } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { activeChangesQuery, freezesQuery } from "../../api/queries";
import type { Change, Freeze } from "../../api/types";
import { serverNow } from "../../format/clock";
import { span } from "../../format/duration";
import { plural } from "../../format/number";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { Tag } from "../../ui/Tag";
import { Time } from "../../ui/Time";
import { useNow } from "../../ui/useNow";
import classes from "./CalendarPanel.module.css";
import { ChangeRow } from "./ChangeRow";
import { groupChanges, splitAt } from "./order";

type Props = {
  /** The change that the page is about. */
  highlight?: string;
  /** How far ahead to look (ms); as far as there is when left out. */
  withinMs?: number;
};

/** What is frozen, waits for a decision, happens now and comes next. */
export function CalendarPanel({ highlight, withinMs }: Props) {
  useNow();
  const changes = useQuery(activeChangesQuery);
  const freezes = useQuery(freezesQuery);
  const held = changes.data?.items.filter((change) => change.status === "held").length ?? 0;
  return (
    <Panel
      title={withinMs ? `Changes now and in the next ${span(withinMs)}` : "Calendar"}
      hint={
        held > 0 ? (
          <Tag tone="warning">{plural(held, "change waits", "changes wait")} for a decision</Tag>
        ) : undefined
      }
      testid="calendar"
    >
      <Loaded query={freezes} rows={1}>
        {({ items }) => <Freezes freezes={items} />}
      </Loaded>
      <Loaded query={changes}>
        {({ items }) => {
          const groups = groupChanges(items, serverNow());
          const [soon, later] = splitAt(groups.upcoming, serverNow() + (withinMs ?? Infinity));
          const list = (group: Change[]) =>
            group.map((change) => (
              <ChangeRow key={change.id} change={change} highlighted={change.id === highlight} />
            ));
          if (groups.held.length + groups.now.length + soon.length === 0) {
            return (
              <>
                <Empty icon={<IconCalendarCheck size={22} />} title="No change now or upcoming">
                  Pipelines claim their window with <code>changecheck --service S --env E</code>.
                </Empty>
                <Later changes={later} />
              </>
            );
          }
          return (
            <>
              <Group title="Waiting for a decision">{list(groups.held)}</Group>
              <Group title="Now">{list(groups.now)}</Group>
              <Group title="Upcoming">{list(soon)}</Group>
              <Later changes={later} />
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Later({ changes: [first, ...rest] }: { changes: Change[] }) {
  if (!first) return null;
  return (
    <Text size="sm" c="var(--hf-muted)" mt={8}>
      {plural(rest.length + 1, "change")} later, the first at <Time at={first.start} />
    </Text>
  );
}

function Group({ title, children }: { title: string; children: ReactNode[] }) {
  if (children.length === 0) return null;
  return (
    <section className={classes.group} aria-label={title}>
      <Text component="h3" className={classes.groupTitle}>
        {title}
      </Text>
      <ul className="hf-list">{children}</ul>
    </section>
  );
}

function Freezes({ freezes }: { freezes: Freeze[] }) {
  if (freezes.length === 0) return null;
  return (
    <ul className={classes.freezes} aria-label="Freezes">
      {freezes.map((freeze) => (
        <li key={freeze.id}>
          <IconSnowflake size={18} aria-hidden />
          <div>
            <Text size="sm" fw={600}>
              {Date.parse(freeze.start) <= serverNow() ? "Frozen" : "Will be frozen"}:{" "}
              {scope(freeze)}
            </Text>
            <Text size="xs">
              {freeze.reason} · {freeze.created_by} · from <Time at={freeze.start} />{" "}
              {freeze.end ? (
                <>
                  until <Time at={freeze.end} />
                </>
              ) : (
                "until lifted"
              )}
            </Text>
          </div>
        </li>
      ))}
    </ul>
  );
}

/** "checkout, search in production"; an empty list means all of them. */
export function scope(freeze: Freeze): string {
  const services = freeze.services?.length ? freeze.services.join(", ") : "every service";
  const environments = freeze.environments?.length
    ? freeze.environments.join(", ")
    : "every environment";
  const kinds = freeze.kinds?.length
    ? ` (${freeze.kinds.join(", ").replaceAll("_", " ")} only)`
    : "";
  return `${services} in ${environments}${kinds}`;
}
