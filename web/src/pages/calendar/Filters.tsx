import { ActionIcon, Button, NativeSelect, SegmentedControl, TextInput } from "@mantine/core";
import { IconChevronLeft, IconChevronRight } from "@tabler/icons-react";
import type { Catalogue } from "../changes/guard";
import classes from "./CalendarPage.module.css";
import { isDay, shiftDay } from "./day";
import type { CalendarSearch } from "./search";

type Props = {
  search: CalendarSearch;
  day: string;
  catalogue: Catalogue | undefined;
  onChange: (next: Partial<Record<keyof CalendarSearch, string | undefined>>) => void;
};

/** Day, place and view; all of them are in the address, so that they can be sent to somebody. */
export function Filters({ search, day, catalogue, onChange }: Props) {
  const names = (list: { name: string }[] | undefined, chosen: string | undefined) => {
    const all = (list ?? []).map(({ name }) => name);
    if (chosen && !all.includes(chosen)) all.push(chosen);
    return all.sort().map((name) => ({ value: name, label: name }));
  };
  return (
    <section className={classes.filters} aria-label="What is shown">
      <div className={classes.days}>
        <ActionIcon
          variant="default"
          size="input-sm"
          onClick={() => onChange({ day: shiftDay(day, -1) })}
          aria-label="The day before"
        >
          <IconChevronLeft size={18} aria-hidden />
        </ActionIcon>
        <TextInput
          type="date"
          label="Day"
          value={day}
          onChange={({ currentTarget: { value } }) => isDay(value) && onChange({ day: value })}
        />
        <ActionIcon
          variant="default"
          size="input-sm"
          onClick={() => onChange({ day: shiftDay(day, 1) })}
          aria-label="The day after"
        >
          <IconChevronRight size={18} aria-hidden />
        </ActionIcon>
        <Button variant="default" onClick={() => onChange({ day: undefined })}>
          Today
        </Button>
      </div>
      <NativeSelect
        label="Environment"
        value={search.environment ?? ""}
        onChange={(event) => onChange({ environment: event.currentTarget.value })}
        data={[{ value: "", label: "All" }, ...names(catalogue?.environments, search.environment)]}
      />
      <NativeSelect
        label="Service"
        value={search.service ?? ""}
        onChange={(event) => onChange({ service: event.currentTarget.value })}
        data={[{ value: "", label: "All" }, ...names(catalogue?.services, search.service)]}
      />
      <SegmentedControl
        aria-label="View"
        value={search.view ?? "day"}
        onChange={(value) => onChange({ view: value })}
        data={[
          { value: "day", label: "Day" },
          { value: "list", label: "List" },
        ]}
      />
    </section>
  );
}
