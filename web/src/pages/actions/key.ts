/**
 * The Idempotency-Key of what a dialog is about to do. It stays the same for one
 * plan, so that a double click or a retry after a lost answer is one run; another
 * plan is another run.
 */
export class DialogKey {
  #plan = "";
  #key = "";

  for(plan: string): string {
    if (plan !== this.#plan || this.#key === "") {
      this.#plan = plan;
      this.#key = crypto.randomUUID();
    }
    return this.#key;
  }
}
