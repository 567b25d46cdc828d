import { VisuallyHidden } from "@mantine/core";
import { useTitle } from "../../ui/useTitle";
import { HealthPanel } from "./HealthPanel";
import { RulesPanel } from "./RulesPanel";
import classes from "./SignalsPage.module.css";
import { TargetsPanel } from "./TargetsPanel";

/** What is measured, what is made of it, and where it comes from. */
export function SignalsPage() {
  useTitle("Signals");
  return (
    <div className={classes.page}>
      <VisuallyHidden component="h1">Signals</VisuallyHidden>
      <HealthPanel />
      <RulesPanel />
      <TargetsPanel />
    </div>
  );
}
