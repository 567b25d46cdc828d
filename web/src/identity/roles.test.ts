import { describe, expect, it } from "vitest";
import type { Me, Role } from "../api/types";
import { atLeast, whyNot, whyNotDecide } from "./roles";

const roles: Role[] = ["viewer", "responder", "approver", "admin"];
const person = (role: string): Me => ({ kind: "person", name: "Bob", handle: "bob", role });

describe("roles", () => {
  it("include the lower ones", () => {
    roles.forEach((role, rank) => {
      roles.forEach((needed, neededRank) => {
        expect(atLeast(role, needed)).toBe(rank >= neededRank);
      });
    });
  });

  it("that are not known include nothing", () => {
    expect(atLeast("owner", "viewer")).toBe(false);
    expect(atLeast("toString", "viewer")).toBe(false);
  });

  it("give a reason", () => {
    expect(whyNot(person("viewer"), "responder")).toMatch(
      /needs the role responder; you are viewer/,
    );
    expect(whyNot(person("admin"), "approver")).toBeUndefined();
    expect(whyNot(null, "viewer")).toMatch(/not logged in/);
  });

  it("do not let the requester decide", () => {
    expect(whyNotDecide(person("admin"), "Bob")).toMatch(/another person/);
    expect(whyNotDecide(person("admin"), "Alice")).toBeUndefined();
    expect(whyNotDecide(person("responder"), "Alice")).toMatch(/approver/);
  });
});
