import { Button, NativeSelect, SegmentedControl, Text, Title } from "@mantine/core";
import { IconMoodCheck } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { incidentPagesQuery } from "../../api/queries";
import type { Incident } from "../../api/types";
import { plural } from "../../format/number";
import { Empty, Loaded } from "../../ui/Panel";
import { useTitle } from "../../ui/useTitle";
import { IncidentRow } from "./IncidentRow";
import classes from "./IncidentsPage.module.css";
import { severityOf, severityOrder, worstFirst } from "./order";

/** Every incident, page by page; what is filtered stands in the address. */
export function IncidentsPage() {
  useTitle("Incidents");
  const { all = false, severity } = useSearch({ from: "/app/incidents" });
  const pages = useInfiniteQuery(incidentPagesQuery(all));
  return (
    <div className={classes.page}>
      <header className={classes.head}>
        <Title order={1} size="h3">
          Incidents
        </Title>
        <Filters />
      </header>
      <Loaded query={pages} rows={6}>
        {(data) => {
          const read = data.pages.flatMap((page) => page.items);
          const shown = read.filter((one) => !severity || one.severity === severity);
          return (
            <>
              {shown.length === 0 ? (
                <Nothing read={read.length} all={all} />
              ) : (
                <ul className="hf-list" aria-label="Incidents">
                  {(all ? shown : worstFirst(shown)).map((incident: Incident) => (
                    <IncidentRow key={incident.id} incident={incident} />
                  ))}
                </ul>
              )}
              <footer className={classes.foot}>
                <Text size="sm" c="var(--hf-muted)" role="status">
                  {plural(shown.length, "incident")}
                  {severity && ` of ${read.length} read`}
                  {pages.hasNextPage && "; there are more"}
                </Text>
                {pages.hasNextPage && (
                  <Button
                    variant="default"
                    size="xs"
                    loading={pages.isFetchingNextPage}
                    onClick={() => void pages.fetchNextPage()}
                  >
                    Read more
                  </Button>
                )}
              </footer>
            </>
          );
        }}
      </Loaded>
    </div>
  );
}

function Filters() {
  const { all = false, severity } = useSearch({ from: "/app/incidents" });
  const navigate = useNavigate();
  const go = (search: { all?: true; severity?: Incident["severity"] }) =>
    void navigate({ to: "/incidents", search, replace: true });
  return (
    <div className={classes.filters}>
      <SegmentedControl
        aria-label="Which incidents"
        size="xs"
        value={all ? "all" : "open"}
        onChange={(value) =>
          go({ ...(value === "all" && { all: true }), ...(severity && { severity }) })
        }
        data={[
          { value: "open", label: "Open" },
          { value: "all", label: "All" },
        ]}
      />
      <NativeSelect
        aria-label="Severity"
        size="xs"
        value={severity ?? ""}
        onChange={(event) => {
          const chosen = severityOf(event.currentTarget.value);
          go({ ...(all && { all: true }), ...(chosen && { severity: chosen }) });
        }}
        data={[
          { value: "", label: "Any severity" },
          ...severityOrder.map((value) => ({ value, label: value })),
        ]}
      />
    </div>
  );
}

function Nothing({ read, all }: { read: number; all: boolean }) {
  if (read > 0) {
    return (
      <Empty icon={<IconMoodCheck size={22} />} title="None of this severity">
        Choose any severity to see {plural(read, "other incident")}.
      </Empty>
    );
  }
  return (
    <Empty icon={<IconMoodCheck size={22} />} title={all ? "No incident yet" : "No open incident"}>
      {all ? (
        <>
          Alert rules open one when they fire, and so does Alertmanager when it posts to{" "}
          <code>/hooks/alertmanager</code>.
        </>
      ) : (
        <>Choose “All” to see those that were resolved.</>
      )}
    </Empty>
  );
}
