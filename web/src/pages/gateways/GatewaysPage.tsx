import { VisuallyHidden } from "@mantine/core";
import { useTitle } from "../../ui/useTitle";
import classes from "./GatewaysPage.module.css";
import { GatewaysPanel } from "./GatewaysPanel";
import { RevisionsPanel } from "./RevisionsPanel";

/** Who enforces the policy, and how it came to be what it is. */
export function GatewaysPage() {
  useTitle("Gateways");
  return (
    <>
      <VisuallyHidden component="h1">Gateways</VisuallyHidden>
      <div className={classes.columns}>
        <GatewaysPanel />
        <RevisionsPanel />
      </div>
    </>
  );
}
