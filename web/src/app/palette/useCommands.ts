import { useMantineColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import {
  actionsQuery,
  liveRunbookRunsQuery,
  liveRunsQuery,
  openIncidentsQuery,
  runbooksQuery,
} from "../../api/queries";
import { localMinute } from "../../format/time";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import type { Command } from "./commands";
import type { Dialogs } from "./Palette";
import { useLogOut } from "./useLogOut";

const pages = [
  { to: "/", label: "Overview", keywords: "home start" },
  { to: "/incidents", label: "Incidents", keywords: "alerts" },
  { to: "/calendar", label: "Calendar", keywords: "changes freezes deploys" },
  { to: "/runbooks", label: "Runbooks", keywords: "steps" },
  { to: "/signals", label: "Signals", keywords: "golden metrics charts rules targets" },
  { to: "/gateways", label: "Gateways", keywords: "revisions breakers" },
] as const;

const schemes = [
  { value: "light", label: "Theme: light" },
  { value: "dark", label: "Theme: dark" },
  { value: "auto", label: "Theme: as the system" },
] as const;

/** Everything that can be done from here by the person who is logged in. */
export function useCommands(dialogs: Dialogs): Command[] {
  return [...usePages(), ...useOpen(dialogs), ...useStartable(dialogs), ...useConsole()];
}

function usePages(): Command[] {
  const navigate = useNavigate();
  return pages.map(({ to, label, keywords }) => ({
    id: `page-${label.toLowerCase()}`,
    group: "Go to",
    label,
    keywords,
    run: () => void navigate({ to }),
  }));
}

/** What goes on now: open incidents, runs of runbooks, leases. */
function useOpen(dialogs: Dialogs): Command[] {
  const navigate = useNavigate();
  const me = useMe();
  const incidents = useQuery(openIncidentsQuery).data?.items ?? [];
  const runbookRuns = useQuery(liveRunbookRunsQuery).data?.items ?? [];
  const runs = useQuery(liveRunsQuery).data?.items ?? [];
  const specs = useQuery(actionsQuery).data?.items ?? [];
  const now = new Date();
  const mayRevert = (action: string) =>
    !whyNot(me, specs.find(({ name }) => name === action)?.role ?? "responder");
  return [
    ...incidents.map(({ id, number, title, severity, service }) => ({
      id: `incident-${id}`,
      group: "Open incidents",
      label: `#${number} ${title}`,
      detail: [severity, service].filter(Boolean).join(", "),
      run: () => void navigate({ to: "/incidents/$id", params: { id } }),
    })),
    ...runbookRuns.map(({ id, title, status, started_by, started_at }) => ({
      id: `runbook-run-${id}`,
      group: "Runbooks in progress",
      label: title,
      detail: `${status}, ${started_by} at ${localMinute(new Date(started_at), now)}`,
      run: () => void navigate({ to: "/runbooks/runs/$id", params: { id } }),
    })),
    ...runs
      .filter(({ action }) => mayRevert(action))
      .map((run) => ({
        id: `revert-${run.id}`,
        group: "Active leases",
        label: `Revert: ${run.summary || run.title}…`,
        detail: run.expires_at
          ? `${run.requester}, until ${localMinute(new Date(run.expires_at), now)}`
          : run.requester,
        keywords: "take back undo",
        run: () => dialogs.revert(run),
      })),
  ];
}

/** What can be started; each opens its dialog first. */
function useStartable(dialogs: Dialogs): Command[] {
  const runbooks = useQuery(runbooksQuery).data?.items ?? [];
  const specs = useQuery(actionsQuery).data?.items ?? [];
  return [
    ...runbooks.map(({ id, title, summary }) => ({
      id: `runbook-${id}`,
      group: "Runbooks",
      label: `Start: ${title}…`,
      keywords: `${id} ${summary}`,
      run: () => dialogs.runbook(id),
    })),
    ...specs.map(({ name, title, summary }) => ({
      id: `action-${name}`,
      group: "Actions",
      label: `${title}…`,
      detail: "shows its plan first",
      keywords: `${name} ${summary}`,
      run: () => dialogs.action({ suggestion: { action: name, title, params: {}, why: "" } }),
    })),
  ];
}

function useConsole(): Command[] {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const logOut = useLogOut();
  return [
    ...schemes
      .filter(({ value }) => value !== colorScheme)
      .map(({ value, label }) => ({
        id: `theme-${value}`,
        group: "Console",
        label,
        keywords: "colours mode",
        run: () => setColorScheme(value),
      })),
    { id: "log-out", group: "Console", label: "Log out", keywords: "sign out", run: logOut },
  ];
}
