import type { components } from "./schema.gen";

type Schemas = components["schemas"];

export type ActionRun = Schemas["ActionRun"];
export type ActionSpec = Schemas["ActionSpec"];
export type ParamSpec = ActionSpec["params"][number];
export type Alert = Schemas["Alert"];
export type Change = Schemas["Change"];
export type Freeze = Schemas["Freeze"];
export type Gateway = Schemas["Gateway"];
export type Incident = Schemas["Incident"];
export type IncidentDetail = Schemas["IncidentDetail"];
export type Me = Schemas["Me"];
export type Plan = Schemas["Plan"];
export type PolicyChange = Schemas["PolicyChange"];
export type ProblemDocument = Schemas["Problem"];
export type Role = Schemas["Role"];
export type Severity = Schemas["Severity"];
export type Suggestion = Schemas["Suggestion"];
export type TimelineEntry = Schemas["TimelineEntry"];
export type Verification = Schemas["Verification"];
