import { isDay } from "./day";

/** What the calendar's address says: which day, how to draw it, what to leave out, what is selected. */
export type CalendarSearch = {
  /** A local day, "2026-11-30"; today when left out. */
  day?: string;
  view?: "list";
  environment?: string;
  service?: string;
  /** The change whose details are open. */
  change?: string;
};

/** Reads an address; what makes no sense is left out. It is the route's validateSearch. */
export function calendarSearch(search: Record<string, unknown>): CalendarSearch {
  const { day, view, environment, service, change } = search;
  return {
    ...(isDay(day) && { day }),
    ...(view === "list" && { view }),
    ...(isName(environment) && { environment }),
    ...(isName(service) && { service }),
    ...(isName(change) && { change }),
  };
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
