import { NativeSelect, TextInput } from "@mantine/core";
import { useState } from "react";
import type { ParamSpec } from "../../api/types";
import { fieldError } from "./params";

/** One parameter of an action, as its description says. */
export function ParamField(props: {
  param: ParamSpec;
  value: string;
  onChange: (value: string) => void;
}) {
  const { param, value, onChange } = props;
  const [left, setLeft] = useState(false);
  const shared = {
    label: param.unit ? `${sentence(param.name)} (${param.unit})` : sentence(param.name),
    description: param.help,
    required: param.required,
    error: left ? fieldError(param, value) : undefined,
    onBlur: () => setLeft(true),
    value,
  };
  const choices = param.choices ?? [];
  if (choices.length === 0) {
    const numeric = param.kind === "number" || param.kind === "integer";
    return (
      <TextInput
        {...shared}
        inputMode={numeric ? "decimal" : "text"}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  // What was suggested stays choosable although the policy lost it; the plan says so.
  const known = value && !choices.includes(value) ? [value, ...choices] : choices;
  return (
    <NativeSelect
      {...shared}
      onChange={(event) => onChange(event.currentTarget.value)}
      data={[
        { value: "", label: param.required ? "Choose…" : "None", disabled: param.required },
        ...known.map((choice) => ({ value: choice, label: choice })),
      ]}
    />
  );
}

function sentence(name: string): string {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
