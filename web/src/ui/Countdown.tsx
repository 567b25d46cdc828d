import { serverNow } from "../format/clock";
import { countdown, span } from "../format/duration";
import { localTime, utcTime } from "../format/time";
import classes from "./Countdown.module.css";
import { useNow } from "./useNow";

const soonMs = 2 * 60_000;

/** Time left until `until`, by the server's clock, with a bar of the whole lease from `from`. */
export function Countdown({ from, until }: { from?: string | undefined; until: string }) {
  useNow();
  const end = new Date(until);
  const left = end.getTime() - serverNow();
  const whole = from ? end.getTime() - Date.parse(from) : Number.NaN;
  const share = Math.min(1, Math.max(0, left / whole));
  return (
    <span className={classes.root} data-soon={left < soonMs || undefined}>
      <time
        dateTime={until}
        title={`Ends ${localTime(end, new Date())} local, ${utcTime(end)}`}
        // Read on demand: a live region would talk every second.
        aria-label={left > 0 ? `${span(left)} left` : "over"}
        role="timer"
        aria-live="off"
        className={classes.left}
        data-testid="countdown"
      >
        {left > 0 ? countdown(left) : "ending"}
      </time>
      {Number.isFinite(share) && (
        <svg
          className={classes.bar}
          viewBox="0 0 100 4"
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          <rect className={classes.track} width="100" height="4" rx="2" />
          <rect className={classes.fill} width={share * 100} height="4" rx="2" />
        </svg>
      )}
    </span>
  );
}
