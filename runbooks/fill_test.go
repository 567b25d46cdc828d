package runbooks

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFillQueryByPlace(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{"s": kindText, "n": kindNumber}
	tests := []struct {
		name, template, s, want, problem string
	}{
		{"plain", `up{a="${s}"}`, "llm", `up{a="llm"}`, ""},
		{"a quote cannot break out", `up{a="${s}"}`, `x"} or up{b="`, `up{a="x\"} or up{b=\""}`, ""},
		{"nor can a backslash", `up{a="${s}"}`, `x\`, `up{a="x\\"}`, ""},
		{"in the middle of a text", `up{a="pre-${s}-post",b="${s}"}`, "q\"", `up{a="pre-q\"-post",b="q\""}`, ""},
		{"a pattern stands for itself", `up{a=~"${s}|x"}`, ".*", `up{a=~"\\.\\*|x"}`, ""},
		{"a negative pattern too", `up{a !~ "${s}"}`, "a|b", `up{a !~ "a\\|b"}`, ""},
		{"a pattern before is over", `up{a=~"x",b="${s}"}`, ".*", `up{a=~"x",b=".*"}`, ""},
		{"quotes inside other quotes", `label_replace(up, "x", '"', "b", "${s}")`, "q", `label_replace(up, "x", '"', "b", "q")`, ""},
		{"an escaped quote is none", `up{a="\"${s}"}`, "q", `up{a="\"q"}`, ""},
		{"a comment sign in a text is none", `up{a="#${s}"}`, "q", `up{a="#q"}`, ""},
		{"after a comment", "up # \"\n+ on() x{a=\"${s}\"}", "q", "up # \"\n+ on() x{a=\"q\"}", ""},
		{"number outside", `up > ${n} * 2`, "", `up > 7.5 * 2`, ""},
		{"number in a text", `up{a="${n}"}`, "", `up{a="7.5"}`, ""},
		{"text outside", `up > ${s}`, "5", "", "outside of quotes"},
		{"text in single quotes", `up{a='${s}'}`, "q", "", "single quotes"},
		{"text in backquotes", "up{a=`${s}`}", "q", "", "single quotes, in backquotes"},
		{"after a backslash", `up{a="\${s}"}`, "n", "", "after a backslash"},
		{"in a comment", "up # ${n}", "", "", "in a comment"},
		{"broken", `up{a="${S}"}`, "", "", "begins no reference"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := fillQuery(tt.template, kinds, map[string]string{"s": tt.s, "n": "7.5"})
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

// Whatever the value is, the query has the same texts around one that means it.
func TestNoValueBreaksOutOfItsQuotes(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{"v": kindText}
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`["'\\{}$#\x60 .*|()x\[\]]{0,12}`)).Draw(rt, "value")
		got, err := fillQuery(`a{l="${v}"} + b{l=~"${v}"}`, kinds, map[string]string{"v": value})
		require.NoError(t, err)

		rest, ok := strings.CutPrefix(got, `a{l=`)
		require.True(t, ok)
		literal, err := strconv.QuotedPrefix(rest)
		require.NoError(t, err, got)
		meant, err := strconv.Unquote(literal)
		require.NoError(t, err)
		require.Equal(t, strings.ToValidUTF8(value, "\ufffd"), strings.ToValidUTF8(meant, "\ufffd"))

		rest, ok = strings.CutPrefix(rest[len(literal):], `} + b{l=~`)
		require.True(t, ok, got)
		literal, err = strconv.QuotedPrefix(rest)
		require.NoError(t, err)
		pattern, err := strconv.Unquote(literal)
		require.NoError(t, err)
		require.Equal(t, "}", rest[len(literal):])
		matched, err := regexp.MatchString("^(?s:"+pattern+")$", meant)
		require.NoError(t, err)
		require.True(t, matched)
	})
}

func TestValuesByKind(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind, value, want, problem string
	}{
		{kindText, "  any\ttext ", "", "control characters"},
		{kindText, " any text ", "any text", ""},
		{kindText, strings.Repeat("x", 301), "", "longer than 300"},
		{kindText, "a\xff", "", "not UTF-8"},
		{kindNumber, "4e1", "40", ""},
		{kindNumber, "-0.50", "-0.5", ""},
		{kindNumber, "1e300", "1e+300", ""},
		{kindNumber, "1e-300", "1e-300", ""},
		{kindNumber, "0x10", "", "want a number"},
		{kindNumber, "NaN", "", "want a number"},
		{kindNumber, "+Inf", "", "want a number"},
		{kindNumber, "1e999", "", "want a number"},
		{kindNumber, "40 OR 1", "", "want a number"},
		{kindInteger, "007", "7", ""},
		{kindInteger, "7.5", "", "want a whole number"},
		{kindDependency, "vector-db", "vector-db", ""},
		{kindDependency, `llm"}`, "", "no dependency can be named so"},
		{kindRoute, "-chat", "", "can be named so"},
		{kindTenant, "ACME", "", "can be named so"},
		{kindService, "My.Service_1", "My.Service_1", ""},
		{kindService, ".hidden", "", "no service can be named so"},
		{kindEnvironment, "prod eu", "", "no environment can be named so"},
		{kindLimitTarget, "global", "global", ""},
		{kindLimitTarget, "route:chat", "route:chat", ""},
		{kindLimitTarget, "tenant:acme", "tenant:acme", ""},
		{kindLimitTarget, "pool:x", "", `want "global"`},
		{kindLimitTarget, "route:", "", `want "global"`},
		{kindText, "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" "+tt.value[:min(20, len(tt.value))], func(t *testing.T) {
			t.Parallel()
			got, problem := Param{Name: "p", Kind: tt.kind}.checked(tt.value)
			require.Equal(t, tt.want, got)
			if tt.problem == "" {
				require.Empty(t, problem)
				return
			}
			require.Contains(t, problem, tt.problem)
		})
	}
	_, problem := Param{Name: "p", Kind: kindText, Required: true}.checked("  ")
	require.Equal(t, "is missing", problem)
}

func TestFilledIsACopy(t *testing.T) {
	t.Parallel()
	run := Run{
		Params: map[string]string{"a": "x"},
		Runbook: Runbook{
			Params: []Param{{Name: "a", Kind: kindText}},
			Steps: []Step{{
				Title: "T ${a}", Command: "C ${a}", Expect: "E ${a}", Question: "Q ${a}", Text: "X ${a}",
				Params: map[string]string{"p": "${a}-${a}"}, Choices: []Choice{{ID: "c", Label: "L ${a}"}},
			}},
		},
	}
	got := run.Filled(0)
	require.Equal(t, Step{
		Title: "T x", Command: "C x", Expect: "E x", Question: "Q x", Text: "X x",
		Params: map[string]string{"p": "x-x"}, Choices: []Choice{{ID: "c", Label: "L x"}},
	}, got)
	require.Equal(t, "${a}-${a}", run.Runbook.Steps[0].Params["p"])
	require.Equal(t, "L ${a}", run.Runbook.Steps[0].Choices[0].Label)
}
