import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { rangeQuery } from "../../api/queries";
import type { GoldenSignal } from "../../api/types";
import { hasData, type Summary, summarize, toColumns } from "../../charts/columns";
import type { Mark } from "../../charts/marks";
import { askFor, type ChartRange } from "../../charts/range";
import { TimeChart } from "../../charts/TimeChart";
import { measured, type Unit } from "../../format/unit";
import { Problem } from "../../ui/Problem";
import { thresholdsOf } from "../signals/order";

type Props = {
  title: string;
  signal: GoldenSignal;
  range: ChartRange;
  marks: readonly Mark[];
  /** When the incident opened (ms). */
  opened: number;
  sync: string;
};

/** The chart of one signal; each reads its own curve. */
export function SignalChart({ title, signal, range, marks, opened, sync }: Props) {
  const { columns, error, refetch } = useColumns(signal.query, range);
  const thresholds = useMemo(() => thresholdsOf(signal), [signal]);
  if (error) return <Problem error={error} onRetry={refetch} />;
  return (
    <TimeChart
      title={title}
      unit={signal.unit}
      columns={columns}
      marks={marks}
      thresholds={thresholds}
      sync={sync}
      summary={hasData(columns) ? inWords(summarize(columns, opened), signal.unit) : "no data"}
    />
  );
}

/** The curves of a query over a range; empty until they are there. */
export function useColumns(query: string, range: ChartRange) {
  const answer = useQuery(rangeQuery({ query, ...askFor(range) }));
  const items = answer.data?.items;
  const columns = useMemo(() => toColumns(items ?? [], range), [items, range]);
  return {
    columns,
    // What was read before stays on the screen; the page's banner says that it is old.
    error: items ? null : answer.error,
    refetch: () => void answer.refetch(),
  };
}

function inWords(summary: Summary, unit: Unit): string {
  return `${measured(summary.before, unit)} before, at most ${measured(summary.highest, unit)}, at least ${measured(summary.lowest, unit)}, last ${measured(summary.last, unit)}`;
}
