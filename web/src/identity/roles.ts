import type { Me, Role } from "../api/types";

const ranks: Record<Role, number> = { viewer: 0, responder: 1, approver: 2, admin: 3 };

/** Whether a role includes another: viewer < responder < approver < admin. */
export function atLeast(role: string, needed: Role): boolean {
  const rank = (ranks as Record<string, number | undefined>)[role];
  return rank !== undefined && rank >= ranks[needed];
}

/**
 * Why somebody may not do something that needs a role, or undefined if they may.
 * The server decides; this only spares people a click that would be refused.
 */
export function whyNot(me: Me | null | undefined, needed: Role): string | undefined {
  if (!me) return "You are not logged in.";
  if (atLeast(me.role, needed)) return undefined;
  return `This needs the role ${needed}; you are ${me.role}. An admin can change that.`;
}

/** Why somebody may not decide about a held change, or undefined if they may. */
export function whyNotDecide(
  me: Me | null | undefined,
  requester: string | undefined,
): string | undefined {
  const role = whyNot(me, "approver");
  if (role) return role;
  if (me && requester && (requester === me.handle || requester === me.name)) {
    return "You asked for this change; another person has to decide.";
  }
  return undefined;
}
