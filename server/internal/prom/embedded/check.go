package embedded

import "github.com/prometheus/prometheus/promql/parser"

// CheckQuery says what is wrong with a PromQL query, with the place in it.
func CheckQuery(query string) error {
	_, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	return err
}
