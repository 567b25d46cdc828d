import { IconPlugConnected } from "@tabler/icons-react";
import { Empty } from "../../ui/Panel";

/** What to do on a server that knows no metrics. */
export function NoMetrics() {
  return (
    <Empty icon={<IconPlugConnected size={22} />} title="No source of metrics is configured">
      Start the server with <code>HOLDFAST_PROMETHEUS_URL</code> set to your Prometheus, or list
      what the embedded one scrapes under <code>metrics.jobs</code> in the configuration. Until then
      nothing here is known: neither good nor bad.
    </Empty>
  );
}
