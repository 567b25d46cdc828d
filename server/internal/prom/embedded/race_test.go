//go:build race

package embedded_test

// raceDetector says that this build is about ten times slower.
const raceDetector = true
