package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	noSkips := flag.Bool("no-skips", false, "fail when a test was skipped")
	figures := flag.Bool("figures", false, "also show what passing tests logged")
	allowFile := flag.String("allow", "", "`file` of skips that -no-skips accepts")
	flag.Parse()
	if flag.NArg() != 0 {
		fmt.Fprintf(os.Stderr, "testreport: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	allowed, err := readAllowed(*allowFile)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	r := newReport(os.Stdout)
	r.figures = *figures
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !r.finish(*noSkips, allowed) {
		os.Exit(1)
	}
}
