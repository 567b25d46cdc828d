import { Button, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Mark } from "../../ui/Mark";
import { Problem } from "../../ui/Problem";
import classes from "./CodePage.module.css";

/**
 * A page that a one-time link leads to. Opening it does nothing, because mail
 * scanners and link previews open links too; the button does.
 */
export function CodePage(props: {
  title: string;
  code: string | undefined;
  missing: ReactNode;
  children: ReactNode;
  button: string;
  onContinue: (code: string) => Promise<void>;
}) {
  const { code, onContinue } = props;
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();

  async function proceed(): Promise<void> {
    if (busy || !code) return;
    setBusy(true);
    setError(undefined);
    try {
      await onContinue(code);
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  return (
    <main className={classes.page}>
      <div className={classes.card}>
        <Stack>
          <Mark />
          <Title order={1} size="h3">
            {props.title}
          </Title>
          {code ? (
            <>
              <Text size="sm">{props.children}</Text>
              {error !== undefined && <Problem error={error} />}
              <Button
                onClick={() => void proceed()}
                loading={busy}
                size="md"
                data-testid="continue"
              >
                {props.button}
              </Button>
            </>
          ) : (
            props.missing
          )}
        </Stack>
      </div>
    </main>
  );
}
