// Package signals holds the golden signals of an inference service: what they
// are called, in which unit they are counted and where the number comes from;
// and how a number is judged. Missing, NaN and infinite values are no data: they
// are never zero, never a reason to trip and never a success (cases C27, C30).
// It is pure and knows the standard library only.
package signals
