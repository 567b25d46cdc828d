import { useQuery } from "@tanstack/react-query";
import {
  activeChangesQuery,
  gatewaysQuery,
  liveRunsQuery,
  openIncidentsQuery,
} from "../../api/queries";
import { serverNow } from "../../format/clock";
import { countdown } from "../../format/duration";
import { useNow } from "../../ui/useNow";
import { soonestFirst } from "../runs/LeasesPanel";
import { changeFact, type Fact, gatewayFact, incidentFact } from "./facts";
import classes from "./Situation.module.css";

/** The whole state in four figures, for the first second of looking. */
export function Situation() {
  const incidents = useQuery(openIncidentsQuery).data;
  const runs = useQuery(liveRunsQuery).data;
  const gateways = useQuery(gatewaysQuery).data;
  const changes = useQuery(activeChangesQuery).data;
  const ends = runs && soonestFirst(runs.items)[0]?.expires_at;
  return (
    <section className={classes.root} aria-label="Situation">
      <Tile name="Open incidents" fact={incidentFact(incidents?.items, Boolean(incidents?.next))} />
      <Tile
        name="Active leases"
        fact={{
          value: runs ? String(runs.items.length) : "–",
          note: runs ? (runs.items.length > 0 ? "" : "base policy everywhere") : "no data",
          tone: runs && runs.items.length > 0 ? "info" : runs ? "good" : "neutral",
        }}
        note={ends ? <Ends at={ends} /> : undefined}
      />
      <Tile name="Gateways up to date" fact={gatewayFact(gateways?.items)} />
      <Tile name="Changes" fact={changeFact(changes?.items)} />
    </section>
  );
}

function Ends({ at }: { at: string }) {
  useNow();
  return <>next ends in {countdown(Date.parse(at) - serverNow())}</>;
}

function Tile({ name, fact, note }: { name: string; fact: Fact; note?: React.ReactNode }) {
  return (
    <div className={classes.tile} data-tone={fact.tone}>
      <div className={classes.name}>{name}</div>
      <div className={classes.value}>{fact.value}</div>
      <div className={classes.note}>{note ?? fact.note}</div>
    </div>
  );
}
