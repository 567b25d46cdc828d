import { Button, type ButtonProps, Tooltip } from "@mantine/core";
import { type MouseEvent, type ReactNode, useId } from "react";

type Props = ButtonProps & {
  /** Why it cannot be pressed; undefined when it can. */
  blocked?: string | undefined;
  children: ReactNode;
  onClick?: (event: MouseEvent<HTMLButtonElement>) => void;
  type?: "button" | "submit";
  "data-testid"?: string;
  "aria-label"?: string;
};

/**
 * A button that says why it is disabled. It stays focusable, because a reason
 * that keyboard and touch cannot reach is none.
 */
export function GatedButton({ blocked, onClick, children, ...rest }: Props) {
  const id = useId();
  if (!blocked) {
    return (
      <Button {...rest} {...(onClick && { onClick })}>
        {children}
      </Button>
    );
  }
  return (
    <Tooltip label={blocked} events={{ hover: true, focus: true, touch: true }} multiline maw={280}>
      <Button
        {...rest}
        type="button"
        aria-disabled="true"
        aria-describedby={id}
        data-disabled
        onClick={(event: MouseEvent<HTMLButtonElement>) => event.preventDefault()}
      >
        {children}
        <span id={id} hidden>
          {blocked}
        </span>
      </Button>
    </Tooltip>
  );
}
