package policy

import (
	"fmt"
	"strings"
)

// overridable are the paths an override may set; "*" stands for a name.
var overridable = []string{
	"dependencies.*.breaker.forced",
	"limits.global",
	"routes.*.limit",
	"tenants.*.limit",
}

// CheckPath says why an override may not set path, or returns nil. Overridable
// are dependencies.<name>.breaker.forced, limits.global, routes.<name>.limit
// and tenants.<name>.limit.
func CheckPath(path string) error {
	for _, pattern := range overridable {
		if name, ok := matchPath(pattern, path); ok {
			if name == "" {
				return nil
			}
			if err := CheckName(name); err != nil {
				return fmt.Errorf("path %q: name %w", path, err)
			}
			return nil
		}
	}
	return fmt.Errorf("path %q cannot be overridden: overridable are %s",
		path, strings.ReplaceAll(strings.Join(overridable, ", "), "*", "<name>"))
}

// matchPath returns the name at the pattern's star, empty when it has none.
func matchPath(pattern, path string) (name string, ok bool) {
	want, got := strings.Split(pattern, "."), strings.Split(path, ".")
	if len(want) != len(got) {
		return "", false
	}
	for i := range want {
		switch {
		case want[i] == "*" && got[i] != "":
			name = got[i]
		case want[i] != got[i]:
			return "", false
		}
	}
	return name, true
}

// PathsConflict says whether two overrides cannot live at once: one sets what
// the other sets, or a part of it. Trip and close of one breaker conflict.
func PathsConflict(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// BreakerForcedPath is the path of a dependency's forced breaker state.
func BreakerForcedPath(dependency string) string {
	return "dependencies." + dependency + ".breaker.forced"
}

// GlobalLimitPath is the path of the limit above all routes and tenants.
const GlobalLimitPath = "limits.global"

// RouteLimitPath is the path of a route's own limit.
func RouteLimitPath(route string) string { return "routes." + route + ".limit" }

// TenantLimitPath is the path of a tenant's own limit.
func TenantLimitPath(tenant string) string { return "tenants." + tenant + ".limit" }
