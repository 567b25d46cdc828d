import { serverNow } from "../format/clock";
import { relative } from "../format/duration";
import { localTime, utcTime } from "../format/time";
import { useNow } from "./useNow";

/** A time in local form; UTC on hover and for screen readers' title. */
export function Time({ at }: { at: string }) {
  const date = new Date(at);
  return (
    <time dateTime={at} title={utcTime(date)}>
      {localTime(date, new Date())}
    </time>
  );
}

/** "12 min ago"; local and UTC time on hover. */
export function Ago({ at }: { at: string }) {
  useNow();
  const date = new Date(at);
  return (
    <time dateTime={at} title={`${localTime(date, new Date())} local, ${utcTime(date)}`}>
      {relative(serverNow() - date.getTime())}
    </time>
  );
}
