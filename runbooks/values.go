package runbooks

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds of parameters.
const (
	kindText        = "text"
	kindNumber      = "number"
	kindInteger     = "integer"
	kindDependency  = "dependency"
	kindRoute       = "route"
	kindTenant      = "tenant"
	kindLimitTarget = "limit_target"
	kindService     = "service"
	kindEnvironment = "environment"
)

// kinds are all of them.
var kinds = []string{
	kindText, kindNumber, kindInteger, kindDependency, kindRoute, kindTenant, kindLimitTarget, kindService, kindEnvironment,
}

// maxValue is the longest value of a parameter, in characters.
const maxValue = 300

var (
	// policyName is what the policy takes as a name.
	policyName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	// catalogueName is what the catalogue takes as the name of a service or environment.
	catalogueName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
)

// checked gives a value in its canonical form, or says what is wrong with it.
func (p Param) checked(value string) (canonical, problem string) {
	value = strings.TrimSpace(value)
	switch {
	case !utf8.ValidString(value):
		return "", "is not UTF-8"
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", "has control characters: it is one line of text"
	case utf8.RuneCountInString(value) > maxValue:
		return "", fmt.Sprintf("is longer than %d characters", maxValue)
	case value == "" && p.Required:
		return "", "is missing"
	case value == "":
		return "", ""
	}
	return ofKind(p.Kind, value)
}

// ofKind gives a value that is not empty in the canonical form of its kind.
func ofKind(kind, value string) (canonical, problem string) {
	switch kind {
	case kindNumber:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return "", fmt.Sprintf("is %q: want a number", clip(value, 40))
		}
		return number(f), ""
	case kindInteger:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return "", fmt.Sprintf("is %q: want a whole number", clip(value, 40))
		}
		return strconv.FormatInt(n, 10), ""
	case kindDependency, kindRoute, kindTenant:
		return named(policyName, kind, value)
	case kindService, kindEnvironment:
		return named(catalogueName, kind, value)
	case kindLimitTarget:
		if what, name, _ := strings.Cut(value, ":"); value == "global" || (what == kindRoute || what == kindTenant) && policyName.MatchString(name) {
			return value, ""
		}
		return "", fmt.Sprintf(`is %q: want "global", "route:<name>" or "tenant:<name>"`, clip(value, 80))
	default:
		return value, ""
	}
}

func named(form *regexp.Regexp, kind, value string) (canonical, problem string) {
	if !form.MatchString(value) {
		return "", fmt.Sprintf("is %q: no %s can be named so", clip(value, 80), kind)
	}
	return value, ""
}

// number writes a finite number so that JSON and PromQL read it.
func number(f float64) string {
	if a := math.Abs(f); a == 0 || a >= 1e-6 && a < 1e15 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// sample is a value that stands for the ones to come, to check queries and
// parameters of actions when the runbook is loaded.
func (p Param) sample() string {
	if value, problem := p.checked(p.Default); problem == "" && value != "" {
		return value
	}
	switch p.Kind {
	case kindNumber, kindInteger:
		return "1"
	case kindLimitTarget:
		return "global"
	default:
		return "sample"
	}
}

func (b Runbook) samples() map[string]string {
	values := map[string]string{}
	for _, p := range b.Params {
		values[p.Name] = p.sample()
	}
	return values
}
