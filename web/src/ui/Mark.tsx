import classes from "./Mark.module.css";

/** The product's mark and name. */
export function Mark() {
  return (
    <span className={classes.mark}>
      <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
        <path
          d="M16 2 4 6.5v8.2C4 22 9 27.6 16 30c7-2.4 12-8 12-15.3V6.5z"
          className={classes.shield}
        />
        <path d="M11 9v14M21 9v14M11 16h10" className={classes.letter} />
      </svg>
      holdfast
    </span>
  );
}
