import { Anchor, Center, Loader, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Outlet } from "@tanstack/react-router";
import { meQuery } from "../api/queries";
import { LiveProvider } from "../live/LiveProvider";
import { StaleBanner } from "../live/StaleBanner";
import loginClasses from "../pages/login/CodePage.module.css";
import { HowToLogIn } from "../pages/login/HowToLogIn";
import { Mark } from "../ui/Mark";
import { Problem } from "../ui/Problem";
import { Header } from "./Header";
import classes from "./Shell.module.css";

/** The frame around every page that needs a login, or the way to log in. */
export function Shell() {
  const me = useQuery(meQuery);
  if (me.data === null) return <LoggedOut />;
  if (me.data === undefined) {
    return (
      <main className={loginClasses.page}>
        {me.error ? (
          <Problem error={me.error} onRetry={() => void me.refetch()} />
        ) : (
          <Center>
            <Loader aria-label="Loading" />
          </Center>
        )}
      </main>
    );
  }
  return (
    <LiveProvider>
      <Anchor href="#main" className={classes.skip}>
        Skip to the content
      </Anchor>
      <Header me={me.data} />
      <main id="main" className={classes.main} tabIndex={-1}>
        <div className={classes.banner}>
          <StaleBanner />
        </div>
        <Outlet />
      </main>
    </LiveProvider>
  );
}

function LoggedOut() {
  return (
    <main className={loginClasses.page}>
      <div className={loginClasses.card}>
        <Mark />
        <Title order={1} size="h3" my="md">
          You are not logged in
        </Title>
        <div className={classes.how}>
          <HowToLogIn />
        </div>
      </div>
    </main>
  );
}
