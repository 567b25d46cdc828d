import { Anchor, Drawer, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { changeQuery } from "../../api/queries";
import { Loaded } from "../../ui/Panel";
import { ChangeStatusTag } from "../../ui/tones";
import { ChangeDetail } from "../changes/ChangeDetail";
import { nameOf } from "../changes/guard";
import classes from "./CalendarPage.module.css";

/** The selected change beside the calendar. */
export function ChangeDrawer({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  return (
    <Drawer
      opened={id !== undefined}
      onClose={onClose}
      position="right"
      title="Change"
      classNames={{ content: classes.drawer ?? "", header: classes.drawer ?? "" }}
      closeButtonProps={{ "aria-label": "Close the change" }}
    >
      {id && <Body id={id} />}
    </Drawer>
  );
}

function Body({ id }: { id: string }) {
  const change = useQuery(changeQuery(id));
  return (
    <Loaded query={change} rows={4}>
      {(data) => (
        <Stack gap="sm" data-testid="change-drawer">
          <div>
            <ChangeStatusTag status={data.status} /> <b>{nameOf(data)}</b>
          </div>
          {data.summary && <div>{data.summary}</div>}
          <ChangeDetail change={data} />
          <Anchor component={Link} to={`/changes/${data.id}`} size="sm">
            Open it as a page
          </Anchor>
        </Stack>
      )}
    </Loaded>
  );
}
