import { Anchor, Center, Loader, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
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
      <Main />
    </LiveProvider>
  );
}

/** The page itself; it takes the focus when another one comes, so that reading goes on there. */
function Main() {
  const main = useRef<HTMLElement>(null);
  const pathname = useRouterState({ select: (state) => state.location.pathname });
  const shown = useRef(pathname);
  useEffect(() => {
    if (shown.current === pathname) return;
    shown.current = pathname;
    main.current?.focus({ preventScroll: true });
  }, [pathname]);
  return (
    <main id="main" ref={main} className={classes.main} tabIndex={-1}>
      <div className={classes.banner}>
        <StaleBanner />
      </div>
      <Outlet />
    </main>
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
