import { Notification, VisuallyHidden } from "@mantine/core";
import { IconCheck } from "@tabler/icons-react";
import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useMemo,
  useRef,
  useState,
} from "react";
import classes from "./announce.module.css";

type Announce = (text: string) => void;

const AnnounceContext = createContext<Announce>(() => {});

const shownMs = 6_000;

/** Says what happened: in a corner for the eye, in a live region for a screen reader. */
export function AnnounceProvider({ children }: { children: ReactNode }) {
  const [text, setText] = useState("");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const announce = useCallback((said: string) => {
    clearTimeout(timer.current);
    setText(said);
    timer.current = setTimeout(() => setText(""), shownMs);
  }, []);

  return (
    <AnnounceContext value={useMemo(() => announce, [announce])}>
      {children}
      <VisuallyHidden role="status" aria-live="polite">
        {text}
      </VisuallyHidden>
      {text && (
        <div className={classes.corner} aria-hidden="true">
          <Notification
            icon={<IconCheck size={18} />}
            color="teal"
            withCloseButton={false}
            withBorder
          >
            {text}
          </Notification>
        </div>
      )}
    </AnnounceContext>
  );
}

export function useAnnounce(): Announce {
  return useContext(AnnounceContext);
}
