import { describe, expect, it } from "vitest";
import { noAnswer, ProblemError, problemFromAnswer, problemOf } from "./problem";
import { retryUnlessRefused } from "./queries";

describe("problems", () => {
  it("keep what the server said", () => {
    const error = problemFromAnswer(409, {
      type: "/problems/outdated",
      title: "The plan is out of date",
      status: 409,
      detail: "revision 42",
    });
    expect(error.kind).toBe("outdated");
    expect(error.message).toBe("The plan is out of date: revision 42");
    expect(problemOf(error).status).toBe(409);
  });

  it.each([undefined, null, "<html>", {}, { title: 7, type: "x" }])(
    "are made up for a body of %j",
    (body) => {
      const error = problemFromAnswer(502, body);
      expect(error.status).toBe(502);
      expect(error.problem.title).toBe("holdfast failed (502)");
    },
  );

  it("say what still works when no answer came", () => {
    expect(problemOf(noAnswer()).title).toBe("holdfast does not answer");
    expect(problemOf(new Error("odd")).detail).toBe("odd");
    expect(problemOf("odd").detail).toBe("odd");
  });

  it("are asked again only where that may help", () => {
    const refused = (status: number) => new ProblemError({ type: "x", title: "x", status });
    expect(retryUnlessRefused(0, refused(409))).toBe(false);
    expect(retryUnlessRefused(0, refused(503))).toBe(true);
    expect(retryUnlessRefused(2, refused(503))).toBe(false);
    expect(retryUnlessRefused(0, new TypeError())).toBe(true);
  });
});
