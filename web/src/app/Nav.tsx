import {
  IconActivityHeartbeat,
  IconBook2,
  IconCalendarEvent,
  IconFlame,
  IconLayoutDashboard,
  IconRouter,
} from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { openIncidentsQuery } from "../api/queries";
import { plural } from "../format/number";
import classes from "./Nav.module.css";

const places = [
  { to: "/", label: "Overview", Icon: IconLayoutDashboard },
  { to: "/incidents", label: "Incidents", Icon: IconFlame },
  { to: "/calendar", label: "Calendar", Icon: IconCalendarEvent },
  { to: "/runbooks", label: "Runbooks", Icon: IconBook2 },
  { to: "/signals", label: "Signals", Icon: IconActivityHeartbeat },
  { to: "/gateways", label: "Gateways", Icon: IconRouter },
] as const;

/** The way to every page: in the header on wide screens, at the bottom under a thumb on narrow ones. */
export function Nav() {
  return (
    <nav aria-label="Main" className={classes.nav}>
      <ul className={classes.list}>
        {places.map(({ to, label, Icon }) => (
          <li key={to}>
            <Link to={to} activeOptions={{ exact: to === "/" }} className={classes.link}>
              <span className={classes.icon}>
                <Icon size={18} aria-hidden />
                {to === "/incidents" && <OpenCount />}
              </span>
              {label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** How many incidents are open; nothing while none is, or while that is not known. */
function OpenCount() {
  const open = useQuery(openIncidentsQuery).data;
  if (!open || open.items.length === 0) return null;
  const worst = open.items.some(({ severity }) => severity === "critical") ? "critical" : "bad";
  return (
    <span className={classes.count} data-tone={worst} title={plural(open.items.length, "open one")}>
      {open.items.length}
      {open.next && "+"}
    </span>
  );
}
