import { Paper, Skeleton, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useId } from "react";
import classes from "./Panel.module.css";
import { Problem } from "./Problem";

/** One titled part of a page. */
export function Panel(props: {
  title: string;
  hint?: ReactNode;
  children: ReactNode;
  testid?: string;
}) {
  const id = useId();
  return (
    <Paper
      component="section"
      aria-labelledby={id}
      className={classes.panel}
      data-testid={props.testid}
    >
      <header className={classes.head}>
        <Title order={2} size="h5" id={id}>
          {props.title}
        </Title>
        {props.hint && <div className={classes.hint}>{props.hint}</div>}
      </header>
      {props.children}
    </Paper>
  );
}

/** What an empty list means, and what to do next. */
export function Empty({
  icon,
  title,
  children,
}: {
  icon: ReactNode;
  title: string;
  children: ReactNode;
}) {
  return (
    <div className={classes.empty}>
      <span className={classes.emptyIcon}>{icon}</span>
      <div>
        <Text fw={600} size="sm">
          {title}
        </Text>
        <Text size="sm" c="var(--hf-muted)">
          {children}
        </Text>
      </div>
    </div>
  );
}

type Loadable<T> = {
  data: T | undefined;
  error: unknown;
  refetch(): unknown;
};

/**
 * The three faces of a query. What was read once stays while reading it again
 * fails; the page's banner says that it is old.
 */
export function Loaded<T>(props: {
  query: Loadable<T>;
  rows?: number;
  children: (data: T) => ReactNode;
}) {
  const { data, error, refetch } = props.query;
  if (data !== undefined) return props.children(data);
  if (error) return <Problem error={error} onRetry={() => void refetch()} />;
  return (
    <Stack gap="xs" aria-hidden="true">
      {Array.from({ length: props.rows ?? 2 }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: identical bars have no other identity
        <Skeleton key={row} height={44} />
      ))}
    </Stack>
  );
}
