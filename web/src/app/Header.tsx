import { ActionIcon, Button, Menu, useMantineColorScheme } from "@mantine/core";
import {
  IconBrandSlack,
  IconDeviceDesktop,
  IconLogout,
  IconMoon,
  IconSun,
  IconUser,
} from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import type { Me } from "../api/types";
import { clockOffset } from "../format/clock";
import { span } from "../format/duration";
import { localClock, utcClock } from "../format/time";
import { useStream } from "../live/LiveProvider";
import { Mark } from "../ui/Mark";
import { useNow } from "../ui/useNow";
import classes from "./Header.module.css";
import { Nav } from "./Nav";
import { PaletteButton } from "./palette/PaletteButton";
import { useLogOut } from "./palette/useLogOut";

export function Header({ me }: { me: Me }) {
  return (
    <header className={classes.header}>
      <div className={classes.inner}>
        <Link to="/" className={classes.home} aria-label="holdfast, overview">
          <Mark />
        </Link>
        <Nav />
        <div className={classes.space} />
        <LiveMark />
        <PaletteButton />
        <Clocks />
        <ThemeMenu />
        <PersonMenu me={me} />
      </div>
    </header>
  );
}

function LiveMark() {
  const phase = useStream()?.phase ?? "connecting";
  const text = { live: "Live", connecting: "Connecting", down: "Reconnecting" }[phase];
  return (
    <span className={classes.live} data-phase={phase} title="The event stream of this page">
      <span className={classes.dot} aria-hidden="true" />
      <span className={classes.liveText}>{text}</span>
    </span>
  );
}

function Clocks() {
  const now = useNow();
  const offset = clockOffset();
  const date = new Date(now);
  const warning =
    offset === 0
      ? undefined
      : `This machine's clock is ${span(Math.abs(offset))} ${offset > 0 ? "behind" : "ahead of"} the server's. Countdowns follow the server's.`;
  return (
    <div className={classes.clocks} title={warning} data-off={offset !== 0 || undefined}>
      <span>
        <b>{localClock(date)}</b> local
      </span>
      <span>
        <b>{utcClock(date)}</b> UTC
      </span>
    </div>
  );
}

const schemes = [
  { value: "light", label: "Light", Icon: IconSun },
  { value: "dark", label: "Dark", Icon: IconMoon },
  { value: "auto", label: "As the system", Icon: IconDeviceDesktop },
] as const;

function ThemeMenu() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const chosen = schemes.find(({ value }) => value === colorScheme) ?? schemes[2];
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Theme: ${chosen.label}`}>
          <chosen.Icon size={18} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes.map(({ value, label, Icon }) => (
          <Menu.Item
            key={value}
            leftSection={<Icon size={16} aria-hidden />}
            onClick={() => setColorScheme(value)}
            aria-current={value === colorScheme}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function PersonMenu({ me }: { me: Me }) {
  const logOut = useLogOut();
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          className={classes.person}
          leftSection={<IconUser size={18} aria-hidden />}
        >
          <span className={classes.name}>{me.name}</span>
          <span className={classes.role}>{me.role}</span>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {me.name} · {me.role}
        </Menu.Label>
        <Menu.Label>
          <IconBrandSlack size={14} aria-hidden className={classes.slack} />{" "}
          {me.slack_linked
            ? "Slack user linked"
            : "No Slack user yet: press a button in Slack, and it shows a link"}
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item leftSection={<IconLogout size={16} aria-hidden />} onClick={logOut}>
          Log out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
