import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { api, read } from "../../api/client";
import { meQuery } from "../../api/queries";
import { useTitle } from "../../ui/useTitle";
import { CodePage } from "./CodePage";
import { HowToLogIn } from "./HowToLogIn";

/** Where a login link leads. */
export function LoginPage() {
  const { code } = useSearch({ from: "/login" });
  const navigate = useNavigate();
  const queries = useQueryClient();
  useTitle("Log in");

  async function logIn(oneTime: string): Promise<void> {
    const me = await read(api.POST("/api/v1/session", { body: { code: oneTime } }));
    // What another person had on this screen is not this person's.
    queries.clear();
    queries.setQueryData(meQuery.queryKey, me);
    await navigate({ to: "/", replace: true });
  }

  return (
    <CodePage
      title="Log in to holdfast"
      code={code}
      missing={<HowToLogIn />}
      button="Continue"
      onContinue={logIn}
    >
      This link works once. Continue to open the console on this device.
    </CodePage>
  );
}
