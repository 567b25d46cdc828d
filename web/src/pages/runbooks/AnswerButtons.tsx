import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { statusOf } from "../../api/problem";
import type { RunbookRun } from "../../api/types";
import { whyNot } from "../../identity/roles";
import { useMe } from "../../identity/useMe";
import { useAnnounce } from "../../ui/announce";
import { GatedButton } from "../../ui/GatedButton";
import { Problem } from "../../ui/Problem";
import { useActionRole } from "../runs/useControl";
import classes from "./AnswerButtons.module.css";
import { type Answer, answersOf } from "./answers";
import { PlanDialog } from "./PlanDialog";
import type { StepState } from "./types";
import { type Given, useAnswer } from "./useAnswer";

type Props = {
  run: RunbookRun;
  state: StepState;
  onRefused: (given: Given, error: unknown) => void;
};

/** The buttons of a step that asks. Actions show their plan, and what ends the run is asked once more. */
export function AnswerButtons({ run, state, onRefused }: Props) {
  const { step, attempt } = state;
  const me = useMe();
  const announce = useAnnounce();
  const answer = useAnswer(run.id);
  const actionRole = useActionRole(step.action ?? "");
  const [note, setNote] = useState("");
  // What is asked belongs to one attempt: the next one starts without a dialog.
  const [asked, setAsked] = useState<{ answer: Answer; attempt: number }>();
  const confirming = asked?.attempt === attempt ? asked.answer : undefined;

  function give(wanted: Answer): void {
    if (answer.isPending) return;
    const given: Given = { step: step.id, attempt, answer: wanted.answer };
    if (note.trim()) given.note = note.trim();
    answer.mutate(given, {
      onSuccess: () => {
        setAsked(undefined);
        announce(`Answered: ${wanted.label.replace("…", "")}`);
      },
      onError: (error) => {
        if (statusOf(error) !== 409) return;
        setAsked(undefined);
        onRefused(given, error);
      },
    });
  }

  const press = (wanted: Answer) =>
    wanted.plan || wanted.sure ? setAsked({ answer: wanted, attempt }) : give(wanted);
  const role = (wanted: Answer) => (wanted.plan ? actionRole : "responder");
  const refusal =
    answer.error && statusOf(answer.error) !== 409 ? <Problem error={answer.error} /> : null;
  return (
    <div className={classes.root} data-testid="answers">
      {step.question && <p className={classes.question}>{step.question}</p>}
      <TextInput
        size="xs"
        label="Note (optional)"
        description="It is kept with your answer in the incident's timeline."
        maxLength={500}
        value={note}
        onChange={(event) => setNote(event.currentTarget.value)}
      />
      <div className={classes.buttons}>
        {answersOf(state, run.steps).map((wanted) => (
          <div key={wanted.answer} className={classes.one}>
            <GatedButton
              size="sm"
              variant={wanted.look === "main" ? "filled" : "default"}
              blocked={whyNot(me, role(wanted))}
              loading={answer.isPending && answer.variables?.answer === wanted.answer}
              onClick={() => press(wanted)}
              data-testid={`answer-${wanted.answer}`}
            >
              {wanted.label}
            </GatedButton>
            {wanted.hint && <span className={classes.hint}>{wanted.hint}</span>}
          </div>
        ))}
      </div>
      {!confirming && refusal}
      <PlanDialog
        step={confirming?.plan ? step : undefined}
        pending={answer.isPending}
        refusal={refusal}
        onConfirm={() => confirming && give(confirming)}
        onClose={() => setAsked(undefined)}
      />
      <Modal
        opened={confirming?.sure === true}
        onClose={() => setAsked(undefined)}
        title="Stop the run?"
        closeButtonProps={{ "aria-label": "Close without stopping" }}
      >
        <Stack>
          <Text size="sm">
            The run ends as failed at “{step.title}”. Leases that its actions hold stay in force
            until they end or are reverted one by one.
          </Text>
          {refusal}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={() => setAsked(undefined)} data-autofocus>
              Go on
            </Button>
            <Button
              color="red.9"
              loading={answer.isPending}
              onClick={() => confirming && give(confirming)}
              data-testid="confirm-stop"
            >
              Stop the run
            </Button>
          </Group>
        </Stack>
      </Modal>
    </div>
  );
}
