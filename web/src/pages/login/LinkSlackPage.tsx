import { Alert, Anchor, Text } from "@mantine/core";
import { IconCheck } from "@tabler/icons-react";
import { Link, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client";
import { useMe } from "../../identity/useMe";
import { useTitle } from "../../ui/useTitle";
import { CodePage } from "./CodePage";
import { HowToLogIn } from "./HowToLogIn";

/** Where the one-time link that Slack shows leads: binds the Slack user to who is logged in. */
export function LinkSlackPage() {
  const { code } = useSearch({ from: "/link/slack" });
  const me = useMe();
  const [linked, setLinked] = useState(false);
  useTitle("Link Slack");

  async function link(oneTime: string): Promise<void> {
    await api.POST("/api/v1/slack-link", { body: { code: oneTime } });
    setLinked(true);
  }

  if (me === undefined) return null;
  const usable = me && !linked ? code : undefined;
  return (
    <CodePage
      title="Link your Slack user"
      code={usable}
      missing={<Instead linked={linked} loggedIn={me !== null} />}
      button="Link my Slack user"
      onContinue={link}
    >
      You are logged in as <strong>{me?.name}</strong>. From now on, buttons that you press in Slack
      are pressed by {me?.name}, with the role {me?.role}. Go on only if you pressed a button in
      Slack yourself a moment ago: with a link that somebody sent you, they would press buttons in
      your name. If you are not {me?.name}, close this page.
    </CodePage>
  );
}

function Instead({ linked, loggedIn }: { linked: boolean; loggedIn: boolean }) {
  if (linked) {
    return (
      <>
        <Alert role="status" color="teal" variant="light" icon={<IconCheck />} title="Linked">
          Go back to Slack and press the button again.
        </Alert>
        <Anchor component={Link} to="/" size="sm">
          Open the console
        </Anchor>
      </>
    );
  }
  if (!loggedIn) {
    return (
      <>
        <Text size="sm">Log in first, in this browser; then open the link from Slack again.</Text>
        <HowToLogIn />
      </>
    );
  }
  return (
    <Text size="sm">
      This page needs the whole link. Press a button in Slack without being linked, and it shows you
      a new one.
    </Text>
  );
}
