package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// library holds the rule files by name and gives them to the rule manager.
type library struct {
	parser parser.Parser
	names  []string
	files  map[string]*rulefmt.RuleGroups
}

// readRules parses and checks all rule files. The error names the file and, where
// there is one, the line of each fault.
func readRules(files []RuleFile, p parser.Parser, log *slog.Logger) (*library, error) {
	l := &library{parser: p, files: map[string]*rulefmt.RuleGroups{}}
	var faults []error
	for _, f := range files {
		if _, twice := l.files[f.Name]; twice || f.Name == "" {
			faults = append(faults, fmt.Errorf("rule file %q: its name is empty or used twice", f.Name))
			continue
		}
		groups, errs := rulefmt.Parse(f.Data, false, model.UTF8Validation, p, log.With("file", f.Name))
		for _, err := range errs {
			faults = append(faults, at(f.Name, err))
		}
		l.names = append(l.names, f.Name)
		l.files[f.Name] = groups
	}
	return l, errors.Join(faults...)
}

// at puts the file's name before an error, in the form file:line that editors
// follow. YAML's own errors say "yaml: line 3: …".
func at(file string, err error) error {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "yaml: line "); ok {
		return fmt.Errorf("%s:%s", file, rest)
	}
	if line, rest, ok := strings.Cut(text, ":"); ok {
		if _, notNumber := strconv.Atoi(line); notNumber == nil {
			return fmt.Errorf("%s:%s:%s", file, line, rest)
		}
	}
	return fmt.Errorf("%s: %w", file, err)
}

// Load implements rules.GroupLoader.
func (l *library) Load(name string, _ bool, _ model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	groups, ok := l.files[name]
	if !ok {
		return nil, []error{fmt.Errorf("there is no rule file %q", name)}
	}
	return groups, nil
}

// Parse implements rules.GroupLoader.
func (l *library) Parse(query string) (parser.Expr, error) { return l.parser.ParseExpr(query) }

// alerting gives the alert name of each alerting rule by its key.
func (l *library) alerting() map[string]string {
	names := map[string]string{}
	for _, file := range l.names {
		for _, g := range l.files[file].Groups {
			for i, r := range g.Rules {
				if r.Alert != "" {
					names[ruleKey(file, g.Name, i)] = r.Alert
				}
			}
		}
	}
	return names
}

// ruleKey identifies the i-th rule of a group.
func ruleKey(file, group string, i int) string {
	return rules.GroupKey(file, group) + "#" + strconv.Itoa(i)
}
