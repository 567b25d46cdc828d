import { Anchor, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { changeQuery } from "../../api/queries";
import { Loaded, Panel } from "../../ui/Panel";
import { ChangeStatusTag, words } from "../../ui/tones";
import { useTitle } from "../../ui/useTitle";
import { CalendarPanel } from "./CalendarPanel";
import { ChangeDetail } from "./ChangeDetail";
import classes from "./ChangePage.module.css";

export { isLink } from "./ChangeDetail";

/** One change, where links from Slack and pipelines lead, and its place in the calendar. */
export function ChangePage() {
  const { id } = useParams({ from: "/app/changes/$id" });
  const change = useQuery(changeQuery(id));
  useTitle(change.data ? `${change.data.service} ${words(change.data.kind)}` : "Change");
  return (
    <div className={classes.page}>
      <Anchor component={Link} to="/calendar" size="sm">
        ← Calendar
      </Anchor>
      <Loaded query={change} rows={4}>
        {(data) => (
          <>
            <header className={classes.head}>
              <Title order={1} size="h3">
                {words(data.kind)} of {data.service}
              </Title>
              <ChangeStatusTag status={data.status} />
            </header>
            <Panel title={data.summary || "Details"} testid="change-detail">
              <ChangeDetail change={data} />
            </Panel>
          </>
        )}
      </Loaded>
      <CalendarPanel highlight={id} />
    </div>
  );
}
