import { Text } from "@mantine/core";
import { IconCalendarCheck } from "@tabler/icons-react";
import type { Change } from "../../api/types";
import { Empty } from "../../ui/Panel";
import { ChangeRow } from "../changes/ChangeRow";
import classes from "./DayList.module.css";
import { groupsOf } from "./groups";

/** The day's changes as a list, those that want something first. */
export function DayList({ changes, now }: { changes: Change[]; now: number }) {
  const groups = groupsOf(changes, now);
  if (groups.length === 0) return <NoChange />;
  return (
    <>
      {groups.map(({ title, items }) => (
        <section key={title} aria-label={title} className={classes.group}>
          <Text component="h3" className={classes.title}>
            {title} ({items.length})
          </Text>
          <ul className="hf-list">
            {items.map((change) => (
              <ChangeRow key={change.id} change={change} />
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

/** What an empty day means. */
export function NoChange() {
  return (
    <Empty icon={<IconCalendarCheck size={22} />} title="No change on this day">
      Pipelines claim their window with <code>changecheck --service S --env E</code>.
    </Empty>
  );
}
