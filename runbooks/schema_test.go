package runbooks

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/signals"
)

// object is the part of a schema that the test looks at.
type object struct {
	Properties           map[string]json.RawMessage `json:"properties"`
	Required             []string                   `json:"required"`
	AdditionalProperties *bool                      `json:"additionalProperties"`
	AllOf                []struct {
		If struct {
			Properties map[string]struct {
				Const string `json:"const"`
			} `json:"properties"`
		} `json:"if"`
		Then object `json:"then"`
	} `json:"allOf"`
}

type document struct {
	object
	Schema string            `json:"$schema"`
	Defs   map[string]object `json:"$defs"`
}

func readSchema(t *testing.T) document {
	t.Helper()
	var d document
	require.NoError(t, json.Unmarshal(Schema(), &d))
	return d
}

// keysOf are the keys that the loader reads into a type.
func keysOf(v any) []string {
	var keys []string
	for field := range reflect.TypeOf(v).Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

func TestSchemaHasTheKeysOfTheLoader(t *testing.T) {
	t.Parallel()
	d := readSchema(t)
	require.Equal(t, "https://json-schema.org/draft/2020-12/schema", d.Schema)
	for name, tt := range map[string]struct {
		schema object
		file   any
	}{
		"runbook":   {d.object, fileBook{}},
		"param":     {d.Defs["param"], fileParam{}},
		"step":      {d.Defs["step"], fileStep{}},
		"criterion": {d.Defs["criterion"], fileCriterion{}},
		"choice":    {d.Defs["choice"], fileChoice{}},
	} {
		require.Equal(t, keysOf(tt.file), slices.Sorted(maps.Keys(tt.schema.Properties)), name)
		require.NotNil(t, tt.schema.AdditionalProperties, name)
		require.False(t, *tt.schema.AdditionalProperties, "%s: unknown keys are refused", name)
		for _, key := range tt.schema.Required {
			require.Contains(t, tt.schema.Properties, key, name)
		}
	}
}

// Every step kind needs and refuses the same keys in the schema and in the loader.
func TestSchemaHasTheKeysOfEachKindOfStep(t *testing.T) {
	t.Parallel()
	step := readSchema(t).Defs["step"]
	common := []string{"id", "phase", "title", "kind", "command", "expect"}
	require.ElementsMatch(t, common, step.Required)
	require.Len(t, step.AllOf, len(stepKinds))
	for _, rule := range step.AllOf {
		kind := StepKind(rule.If.Properties["kind"].Const)
		known, ok := stepKinds[kind]
		require.True(t, ok, "%s", kind)
		require.ElementsMatch(t, known.required, rule.Then.Required, "%s needs", kind)
		var refused, want []string
		for key, s := range rule.Then.Properties {
			// "automatic: false" says nothing, so it is no fault.
			if string(s) == "false" || key == "automatic" {
				refused = append(refused, key)
			}
		}
		for key := range step.Properties {
			if !slices.Contains(common, key) && !slices.Contains(known.required, key) && !slices.Contains(known.optional, key) {
				want = append(want, key)
			}
		}
		require.ElementsMatch(t, want, refused, "%s refuses", kind)
	}
}

func TestSchemaHasTheWordsOfTheLoader(t *testing.T) {
	t.Parallel()
	d := readSchema(t)
	words := func(of object, key string) []string {
		var s struct {
			Enum []string `json:"enum"`
		}
		require.NoError(t, json.Unmarshal(of.Properties[key], &s))
		return s.Enum
	}
	require.Equal(t, kinds, words(d.Defs["param"], "kind"))
	require.Equal(t, []string{string(PhaseIsolate), string(PhaseLocate), string(PhaseRestore)}, words(d.Defs["step"], "phase"))
	require.ElementsMatch(t, slices.Collect(maps.Keys(stepKinds)), toKinds(words(d.Defs["step"], "kind")))
	require.Equal(t, []string{string(FailAsk), string(FailStop), string(FailContinue)}, words(d.Defs["step"], "on_failure"))
	for _, is := range words(d.Defs["criterion"], "is") {
		require.True(t, signals.Comparison(is).Valid(), is)
	}
	var choice struct {
		Properties struct {
			ID struct {
				Not struct {
					Enum []string `json:"enum"`
				} `json:"not"`
			} `json:"id"`
		} `json:"properties"`
	}
	var whole struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(Schema(), &whole))
	require.NoError(t, json.Unmarshal(whole.Defs["choice"], &choice))
	require.Equal(t, reserved, choice.Properties.ID.Not.Enum)
}

func toKinds(words []string) []StepKind {
	out := make([]StepKind, len(words))
	for i, w := range words {
		out[i] = StepKind(w)
	}
	return out
}
