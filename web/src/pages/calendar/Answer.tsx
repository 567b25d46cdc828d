import { Button, Text } from "@mantine/core";
import { IconCircleCheck, IconCircleX, IconUserQuestion } from "@tabler/icons-react";
import { serverNow } from "../../format/clock";
import { relative, span } from "../../format/duration";
import { Tag, type Tone } from "../../ui/Tag";
import { Time } from "../../ui/Time";
import { words } from "../../ui/tones";
import { bandOf, type Catalogue } from "../changes/guard";
import { ReasonLine } from "../changes/WhyDecision";
import reasonClasses from "../changes/WhyDecision.module.css";
import classes from "./AskCalendar.module.css";
import { type Answered, type ChangeDecision, neighbourhoodText, reasonsOf } from "./ask";

const looks: Record<
  ChangeDecision["decision"],
  { tone: Tone; text: string; Icon: typeof IconCircleCheck }
> = {
  allow: { tone: "good", text: "It may go ahead.", Icon: IconCircleCheck },
  confirm: {
    tone: "warning",
    text: "It would be held until another person confirms it.",
    Icon: IconUserQuestion,
  },
  deny: { tone: "bad", text: "It would be denied.", Icon: IconCircleX },
};

/** The calendar's decision with its reasons and, where it is known, the next free time. */
export function Answer(props: {
  asked: Answered;
  catalogue: Catalogue;
  onAskFor: (start: string) => void;
}) {
  const { asked, catalogue, onAskFor } = props;
  const { decision, wanted } = asked;
  const now = serverNow();
  const { tone, text, Icon } = looks[decision.decision];
  const next = decision.decision === "allow" ? undefined : decision.next_open;
  return (
    <section className={classes.answer} aria-label="Answer" data-testid="answer">
      <p className={classes.verdict}>
        <Tag tone={tone} icon={<Icon size={14} aria-hidden />}>
          {decision.decision}
        </Tag>
        <b>{text}</b>
      </p>
      <Text size="sm" c="var(--hf-muted)">
        {words(wanted.kind)} of {wanted.service} in {wanted.environment} from{" "}
        <Time at={asked.start} /> for {wanted.duration}
      </Text>
      <ul className={reasonClasses.reasons}>
        {reasonsOf(asked, catalogue, now).map((reason) => (
          <ReasonLine key={reason.text} reason={reason} />
        ))}
      </ul>
      {next && (
        <div className={classes.next}>
          <Text size="sm">
            Next free time: <Time at={next} /> ({relative(now - Date.parse(next))})
          </Text>
          <Button size="xs" variant="default" onClick={() => onAskFor(next)}>
            Ask for that time
          </Button>
        </div>
      )}
      {decision.decision !== "allow" && !next && (
        <Text size="sm" c="var(--hf-muted)">
          No next free time is known: what is in the way has no end yet.
        </Text>
      )}
      <Text size="xs" c="var(--hf-muted)">
        Within {span(bandOf(catalogue, wanted.environment))} count{" "}
        {neighbourhoodText(catalogue, wanted)}. Nothing is reserved; the answer holds until{" "}
        <Time at={decision.expires_at} />.
      </Text>
    </section>
  );
}
