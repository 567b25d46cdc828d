import { Modal, NativeSelect, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { actionsQuery } from "../../api/queries";
import type { Suggestion } from "../../api/types";
import { Loaded } from "../../ui/Panel";
import { ActionForm } from "./ActionForm";

export type Wanted = {
  /** Where to begin; undefined lets the person choose an action first. */
  suggestion?: Suggestion | undefined;
  incident?: string | undefined;
};

/** Plan first, then confirm with a reason. Mounted anew for each thing wanted. */
export function ActionDialog(props: { wanted: Wanted | undefined; onClose: () => void }) {
  const { wanted, onClose } = props;
  return (
    <Modal
      opened={wanted !== undefined}
      onClose={onClose}
      title={wanted?.suggestion?.title ?? "Choose an action"}
      size="lg"
      closeButtonProps={{ "aria-label": "Close without running anything" }}
      // A click beside the dialog must not throw away a reason that is being typed.
      closeOnClickOutside={false}
    >
      {wanted && <Chooser wanted={wanted} onClose={onClose} />}
    </Modal>
  );
}

function Chooser({ wanted, onClose }: { wanted: Wanted; onClose: () => void }) {
  const specs = useQuery(actionsQuery);
  const [name, setName] = useState(wanted.suggestion?.action ?? "");
  return (
    <Loaded query={specs} rows={4}>
      {({ items }) => {
        const spec = items.find((item) => item.name === name);
        return (
          <Stack>
            {!wanted.suggestion && (
              <NativeSelect
                label="Action"
                value={name}
                onChange={(event) => setName(event.currentTarget.value)}
                data={[
                  { value: "", label: "Choose…", disabled: true },
                  ...items.map((item) => ({ value: item.name, label: item.title })),
                ]}
                data-autofocus
              />
            )}
            {wanted.suggestion && !spec && (
              <Text c="var(--hf-bad-text)">
                This server has no action named {wanted.suggestion.action} any more.
              </Text>
            )}
            {spec && (
              <ActionForm
                key={spec.name}
                spec={spec}
                suggested={wanted.suggestion?.params ?? {}}
                why={wanted.suggestion?.why}
                incident={wanted.incident}
                onClose={onClose}
              />
            )}
          </Stack>
        );
      }}
    </Loaded>
  );
}
