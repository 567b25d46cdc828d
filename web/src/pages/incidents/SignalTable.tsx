import type { GoldenSignal } from "../../api/types";
import { summarize } from "../../charts/columns";
import type { ChartRange } from "../../charts/range";
import { noData } from "../../format/number";
import { measured } from "../../format/unit";
import { useColumns } from "./SignalChart";
import classes from "./SignalCharts.module.css";

type Charted = { key: string; title: string; signal: GoldenSignal };

/** The charts as figures. */
export function SignalTable(props: {
  charts: readonly Charted[];
  range: ChartRange;
  /** When the incident opened (ms). */
  opened: number;
}) {
  return (
    <table className={classes.table} data-testid="signal-table">
      <thead>
        <tr>
          <th scope="col">Signal</th>
          <th scope="col">Before it opened</th>
          <th scope="col">Lowest</th>
          <th scope="col">Highest</th>
          <th scope="col">Last</th>
        </tr>
      </thead>
      <tbody>
        {props.charts.map(({ key, title, signal }) => (
          <Row key={key} title={title} signal={signal} range={props.range} opened={props.opened} />
        ))}
      </tbody>
    </table>
  );
}

function Row(props: { title: string; signal: GoldenSignal; range: ChartRange; opened: number }) {
  const { title, signal, range, opened } = props;
  const { columns, error } = useColumns(signal.query, range);
  const { before, lowest, highest, last } = summarize(columns, opened);
  return (
    <tr>
      <th scope="row">{title}</th>
      {error ? (
        <td colSpan={4} className={classes.missing}>
          could not be read
        </td>
      ) : (
        (["before", "lowest", "highest", "last"] as const).map((name) => {
          const text = measured({ before, lowest, highest, last }[name], signal.unit);
          return (
            <td key={name} className={text === noData ? classes.missing : undefined}>
              {text}
            </td>
          );
        })
      )}
    </tr>
  );
}
