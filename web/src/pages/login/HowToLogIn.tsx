import { Code, Text } from "@mantine/core";

/** There are no passwords; this is how to get in. */
export function HowToLogIn() {
  return (
    <>
      <Text size="sm">
        The console is entered by a one-time link. Whoever can reach the server&apos;s command line
        makes one:
      </Text>
      <Code block>holdfast login-link --person HANDLE</Code>
      <Text size="sm" c="var(--hf-muted)">
        HANDLE is your handle, such as alice. A demo prints a link when it starts. An admin who is
        logged in can make one for you, too.
      </Text>
    </>
  );
}
