import { VisuallyHidden } from "@mantine/core";
import { useTitle } from "../../ui/useTitle";
import { CalendarPanel } from "../changes/CalendarPanel";
import { GatewaysPanel } from "../gateways/GatewaysPanel";
import { IncidentsPanel } from "../incidents/IncidentsPanel";
import { LeasesPanel } from "../runs/LeasesPanel";
import { HealthPanel } from "../signals/HealthPanel";
import classes from "./OverviewPage.module.css";
import { RunbookRunsPanel } from "./RunbookRunsPanel";
import { Situation } from "./Situation";

const comingMs = 4 * 60 * 60_000;

/** What is wrong, how services do, what holds, who enforces it, what comes: in this order also on a phone. */
export function OverviewPage() {
  useTitle("Overview");
  return (
    <>
      <VisuallyHidden component="h1">Overview</VisuallyHidden>
      <Situation />
      <div className={classes.grid}>
        <div className={classes.column}>
          <IncidentsPanel />
          <HealthPanel />
        </div>
        <div className={classes.column}>
          <LeasesPanel />
          <RunbookRunsPanel />
          <GatewaysPanel />
          <CalendarPanel withinMs={comingMs} />
        </div>
      </div>
    </>
  );
}
