import { VisuallyHidden } from "@mantine/core";
import { useTitle } from "../../ui/useTitle";
import { CalendarPanel } from "../changes/CalendarPanel";
import { GatewaysPanel } from "../gateways/GatewaysPanel";
import { IncidentsPanel } from "../incidents/IncidentsPanel";
import { LeasesPanel } from "../runs/LeasesPanel";
import classes from "./OverviewPage.module.css";
import { Situation } from "./Situation";

/** What is wrong, what holds, who enforces it, what comes: in this order also on a phone. */
export function OverviewPage() {
  useTitle("Overview");
  return (
    <>
      <VisuallyHidden component="h1">Overview</VisuallyHidden>
      <Situation />
      <div className={classes.grid}>
        <div className={classes.column}>
          <IncidentsPanel />
          <LeasesPanel />
        </div>
        <div className={classes.column}>
          <GatewaysPanel />
          <CalendarPanel />
        </div>
      </div>
    </>
  );
}
