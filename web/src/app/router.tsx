import { Anchor, Text, Title } from "@mantine/core";
import {
  createRootRoute,
  createRoute,
  createRouter,
  Link,
  lazyRouteComponent,
  type RouterHistory,
} from "@tanstack/react-router";
import type { Severity } from "../api/types";
import { calendarSearch } from "../pages/calendar/search";
import { ChangePage } from "../pages/changes/ChangePage";
import { IncidentPage } from "../pages/incidents/IncidentPage";
import { severityOf } from "../pages/incidents/order";
import { LinkSlackPage } from "../pages/login/LinkSlackPage";
import { LoginPage } from "../pages/login/LoginPage";
import { OverviewPage } from "../pages/overview/OverviewPage";
import { Problem } from "../ui/Problem";
import { Shell } from "./Shell";

type IncidentsSearch = { all?: true; severity?: Severity };

function searchIncidents(search: Record<string, unknown>): IncidentsSearch {
  const severity = severityOf(search.severity);
  return { ...(search.all === true && { all: true }), ...(severity && { severity }) };
}

/** `?runbook=ID` opens the dialog that starts this runbook. */
function searchRunbook({ runbook }: Record<string, unknown>): { runbook?: string } {
  return typeof runbook === "string" && runbook !== "" ? { runbook } : {};
}

function searchCode(search: Record<string, unknown>): { code?: string } {
  // Codes of digits alone are read as numbers.
  const { code } = search;
  return typeof code === "string" || typeof code === "number" ? { code: String(code) } : {};
}

const root = createRootRoute({
  notFoundComponent: NotFound,
  errorComponent: ({ error }) => <Problem error={error} />,
});

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  validateSearch: searchCode,
  component: LoginPage,
});

const linkSlack = createRoute({
  getParentRoute: () => root,
  path: "/link/slack",
  validateSearch: searchCode,
  component: LinkSlackPage,
});

/** Everything that needs a login sits under this route. */
const app = createRoute({ getParentRoute: () => root, id: "app", component: Shell });

const overview = createRoute({ getParentRoute: () => app, path: "/", component: OverviewPage });

const incidents = createRoute({
  getParentRoute: () => app,
  path: "/incidents",
  validateSearch: searchIncidents,
  component: lazyRouteComponent(() => import("../pages/incidents/IncidentsPage"), "IncidentsPage"),
});

const incident = createRoute({
  getParentRoute: () => app,
  path: "/incidents/$id",
  validateSearch: searchRunbook,
  component: IncidentPage,
});

const calendar = createRoute({
  getParentRoute: () => app,
  path: "/calendar",
  validateSearch: calendarSearch,
  component: lazyRouteComponent(() => import("../pages/calendar/CalendarPage"), "CalendarPage"),
});

const runbooks = createRoute({
  getParentRoute: () => app,
  path: "/runbooks",
  component: lazyRouteComponent(() => import("../pages/runbooks/RunbooksPage"), "RunbooksPage"),
});

const runbookRun = createRoute({
  getParentRoute: () => app,
  path: "/runbooks/runs/$id",
  component: lazyRouteComponent(() => import("../pages/runbooks/RunbookRunPage"), "RunbookRunPage"),
});

const signals = createRoute({
  getParentRoute: () => app,
  path: "/signals",
  component: lazyRouteComponent(() => import("../pages/signals/SignalsPage"), "SignalsPage"),
});

const gateways = createRoute({
  getParentRoute: () => app,
  path: "/gateways",
  component: lazyRouteComponent(() => import("../pages/gateways/GatewaysPage"), "GatewaysPage"),
});

const change = createRoute({
  getParentRoute: () => app,
  path: "/changes/$id",
  component: ChangePage,
});

const tree = root.addChildren([
  login,
  linkSlack,
  app.addChildren([
    overview,
    incidents,
    incident,
    change,
    calendar,
    runbooks,
    runbookRun,
    signals,
    gateways,
  ]),
]);

function NotFound() {
  return (
    <main style={{ padding: 32 }}>
      <Title order={1} size="h3">
        There is no such page
      </Title>
      <Text>
        <Anchor component={Link} to="/">
          Go to the overview
        </Anchor>
      </Text>
    </main>
  );
}

export function newRouter(history?: RouterHistory) {
  return createRouter({
    routeTree: tree,
    defaultPreload: false,
    scrollRestoration: true,
    ...(history && { history }),
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof newRouter>;
  }
}
