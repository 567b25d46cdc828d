import { Alert } from "@mantine/core";
import { IconPlugConnectedX } from "@tabler/icons-react";
import { localTime } from "../format/time";
import { useNow } from "../ui/useNow";
import { useStream } from "./LiveProvider";
import { streamIsStale } from "./stream";
import { useOldestFailing } from "./useFailing";

/** Says that what is on the page may be old, since when, and what goes on meanwhile. */
export function StaleBanner() {
  const now = useNow();
  const stream = useStream();
  const failingSince = useOldestFailing();
  const streamStale = stream !== undefined && streamIsStale(stream, now);

  return (
    <div role="status" aria-live="polite">
      {failingSince > 0 ? (
        <Alert
          color="red"
          variant="light"
          icon={<IconPlugConnectedX />}
          title="Stale: holdfast does not answer"
        >
          What you see is from {localTime(new Date(failingSince), new Date(now))}. Gateways keep
          serving the policy they hold, and leases end by themselves. This page tries again every 5
          seconds.
        </Alert>
      ) : streamStale ? (
        <Alert
          color="yellow"
          variant="light"
          icon={<IconPlugConnectedX />}
          title="Stale: live updates are interrupted"
        >
          No event stream since {localTime(new Date(stream.since), new Date(now))}. The page reads
          everything again every 5 seconds, so it may be a few seconds behind.
        </Alert>
      ) : null}
    </div>
  );
}
