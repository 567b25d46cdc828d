import { Text, Title } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { changesBetweenQuery, freezesQuery } from "../../api/queries";
import type { Change } from "../../api/types";
import { serverNow } from "../../format/clock";
import { Loaded, Panel } from "../../ui/Panel";
import { useNow } from "../../ui/useNow";
import { useTitle } from "../../ui/useTitle";
import { longestBand } from "../changes/guard";
import { servicesQuery } from "../changes/queries";
import { Agenda } from "./Agenda";
import { AskCalendar } from "./AskCalendar";
import classes from "./CalendarPage.module.css";
import { ChangeDrawer } from "./ChangeDrawer";
import { DayList } from "./DayList";
import { DayView } from "./DayView";
import { boundsOf, dayOf, dayTitle } from "./day";
import { Filters } from "./Filters";
import { FreezesPanel } from "./FreezesPanel";
import { freezesOn, lanesOf } from "./lanes";
import { type CalendarSearch, calendarSearch } from "./search";

// A day with lanes needs this width; below it the day is told from top to bottom.
const wide = "(min-width: 62em)";

/** The ledger of one day: who changes what when, what keeps others away, and whether one more fits in. */
export function CalendarPage() {
  useTitle("Calendar");
  useNow();
  const search = calendarSearch(useSearch({ strict: false }) as Record<string, unknown>);
  const navigate = useNavigate();
  const isWide = useMediaQuery(wide, true);
  const now = serverNow();
  const day = search.day ?? dayOf(now);
  const bounds = boundsOf(day);

  const catalogue = useQuery(servicesQuery);
  const freezes = useQuery(freezesQuery);
  // What ends before the day may still keep its guard band in it.
  const around = longestBand(catalogue.data);
  const changes = useQuery(
    changesBetweenQuery({
      from: new Date(bounds.start - around).toISOString(),
      to: new Date(bounds.end + around).toISOString(),
      service: search.service,
    }),
  );

  function go(next: Partial<Record<keyof CalendarSearch, string | undefined>>): void {
    const merged = calendarSearch({ ...search, ...next });
    void navigate({ to: "/calendar", search: merged as never, replace: true });
  }
  const select = (id: string | undefined) => go({ change: id });

  return (
    <div className={classes.page}>
      <Title order={1} size="h3">
        Calendar
      </Title>
      <Filters search={search} day={day} catalogue={catalogue.data} onChange={go} />
      <Panel title={dayTitle(day)} hint="Local time, with UTC" testid="calendar-day">
        <Loaded query={catalogue} rows={2}>
          {(known) => (
            <Loaded query={changes} rows={5}>
              {({ items, next }) => {
                const frozen = freezes.data?.items ?? [];
                const shown = items.filter(isIn(search.environment));
                const lanes = lanesOf(shown, frozen, known, bounds, now);
                const bars = freezesOn(search, frozen, bounds);
                const own = lanes.flatMap(({ blocks }) => blocks.map(({ change }) => change));
                return (
                  <>
                    {search.view === "list" ? (
                      <DayList changes={own} now={now} />
                    ) : isWide ? (
                      <DayView
                        lanes={lanes}
                        freezes={bars}
                        day={bounds}
                        now={now}
                        selected={search.change}
                        onSelect={select}
                      />
                    ) : (
                      <Agenda
                        lanes={lanes}
                        freezes={bars}
                        day={bounds}
                        now={now}
                        onSelect={select}
                      />
                    )}
                    {next && (
                      <Text size="sm" c="var(--hf-warning-text)" mt={8}>
                        There are more changes than are shown; choose a service or an environment.
                      </Text>
                    )}
                  </>
                );
              }}
            </Loaded>
          )}
        </Loaded>
      </Panel>
      <div className={classes.columns}>
        <AskCalendar
          catalogue={catalogue.data}
          service={search.service}
          environment={search.environment}
        />
        <FreezesPanel catalogue={catalogue.data} />
      </div>
      <ChangeDrawer id={search.change} onClose={() => select(undefined)} />
    </div>
  );
}

/** An emergency action without an environment may be anywhere, so it is shown in each. */
function isIn(environment: string | undefined): (change: Change) => boolean {
  return (change) =>
    !environment || change.environment === environment || change.environment === "";
}
