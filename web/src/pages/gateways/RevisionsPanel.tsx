import { Button, Text } from "@mantine/core";
import { IconHistory } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { revisionPagesQuery } from "../../api/queries";
import { Empty, Loaded, Panel } from "../../ui/Panel";
import { Time } from "../../ui/Time";
import classes from "./GatewaysPage.module.css";

/** Every revision of the policy, with who made it and why. */
export function RevisionsPanel() {
  const pages = useInfiniteQuery(revisionPagesQuery);
  return (
    <Panel title="Policy revisions" hint="newest first" testid="revisions">
      <Loaded query={pages} rows={6}>
        {(data) => {
          const revisions = data.pages.flatMap((page) => page.items);
          if (revisions.length === 0) {
            return (
              <Empty icon={<IconHistory size={22} />} title="The policy was never changed">
                Actions and edits of the policy write one revision each.
              </Empty>
            );
          }
          return (
            <ol className="hf-list">
              {revisions.map((one) => (
                <li key={`${one.lineage}:${one.revision}`} className={classes.entry}>
                  <span className={classes.number}>{one.revision}</span>
                  <div>
                    <Text size="sm" className={classes.cause}>
                      {one.cause}
                    </Text>
                    <Text size="xs" c="var(--hf-muted)" title={`Lineage ${one.lineage}`}>
                      <Time at={one.at} /> · {one.actor}
                    </Text>
                  </div>
                </li>
              ))}
            </ol>
          );
        }}
      </Loaded>
      {pages.hasNextPage && (
        <Button
          variant="default"
          size="xs"
          mt={8}
          loading={pages.isFetchingNextPage}
          onClick={() => void pages.fetchNextPage()}
        >
          Read more
        </Button>
      )}
    </Panel>
  );
}
