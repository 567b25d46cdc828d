package actionstest

import "holdfast/gpuguard/policy"

// Document is a small valid base policy: a model behind route chat with a
// fallback, a vector database behind route search without one, one tenant.
func Document() policy.Document {
	return policy.Document{
		Version: policy.Version,
		Tenants: map[string]policy.Tenant{
			"acme": {Class: "vip", Keys: []string{"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}},
		},
		Dependencies: map[string]policy.Dependency{"llm": {Service: "chat-model"}, "milvus": {}},
		Pools: map[string]policy.Pool{
			"llm":    {Dependency: "llm", Endpoints: map[string]policy.Endpoint{"a": {URL: "http://127.0.0.1:9101"}}},
			"milvus": {Dependency: "milvus", Endpoints: map[string]policy.Endpoint{"a": {URL: "http://127.0.0.1:9102"}}},
		},
		Routes: map[string]policy.Route{
			"chat":   {Match: policy.Match{PathPrefix: "/v1/chat"}, Pool: "llm", Fallback: &policy.Fallback{Body: `{"degraded":true}`}},
			"search": {Match: policy.Match{PathPrefix: "/v1/search"}, Pool: "milvus"},
		},
	}
}
