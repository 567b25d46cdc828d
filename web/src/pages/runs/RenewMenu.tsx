import { Menu } from "@mantine/core";
import { IconClockPlus } from "@tabler/icons-react";
import type { ActionRun } from "../../api/types";
import { useAnnounce } from "../../ui/announce";
import { GatedButton } from "../../ui/GatedButton";
import { useRenew } from "./useControl";

const lengths = [
  { ttl: "15m", label: "15 minutes from now" },
  { ttl: "30m", label: "30 minutes from now" },
  { ttl: "1h", label: "1 hour from now" },
];

/** Holds a lease longer. A refusal (its maximum, its state) goes to onError. */
export function RenewMenu(props: {
  run: ActionRun;
  blocked: string | undefined;
  onError: (error: unknown) => void;
}) {
  const { run, blocked, onError } = props;
  const announce = useAnnounce();
  const renew = useRenew();
  const button = (
    <GatedButton
      size="xs"
      variant="default"
      leftSection={<IconClockPlus size={16} aria-hidden />}
      loading={renew.isPending}
      blocked={blocked}
      aria-label={`Renew ${run.summary || run.title}`}
    >
      Renew
    </GatedButton>
  );
  if (blocked) return button;
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>{button}</Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Hold it until</Menu.Label>
        {lengths.map(({ ttl, label }) => (
          <Menu.Item
            key={ttl}
            onClick={() =>
              renew.mutate(
                { run, ttl },
                { onSuccess: () => announce(`Renewed: ends ${label}`), onError },
              )
            }
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
