import { Alert, Button, Code, List, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { problemOf } from "../api/problem";

/** A refusal or failure in full: title, detail, field errors, the id to quote, and a way on. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem = problemOf(error);
  const fields = problem.errors ?? [];
  return (
    <Alert
      role="alert"
      color="red"
      variant="light"
      icon={<IconAlertTriangle />}
      title={problem.title}
      data-testid="problem"
    >
      {problem.detail && <Text size="sm">{problem.detail}</Text>}
      {fields.length > 0 && (
        <List size="sm" mt={4}>
          {fields.map((field) => (
            <List.Item key={`${field.path} ${field.message}`}>
              {field.path && <Code>{field.path}</Code>} {field.message}
              {field.line !== undefined && ` (line ${field.line})`}
            </List.Item>
          ))}
        </List>
      )}
      {problem.instance && (
        <Text size="xs" mt={4}>
          Quote <Code>{problem.instance}</Code> when asking for help; the server's log has it.
        </Text>
      )}
      {onRetry && (
        <Button mt="xs" size="xs" variant="default" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert>
  );
}
