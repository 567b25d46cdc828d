package policy

import (
	"fmt"
	"testing"
	"time"
)

// large is a document of n routes, pools and tenants.
func large(n int) Document {
	d := Document{Version: Version, Tenants: map[string]Tenant{}, Dependencies: map[string]Dependency{"llm": {}}, Pools: map[string]Pool{}, Routes: map[string]Route{}}
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		d.Pools[name] = Pool{Dependency: "llm", Endpoints: map[string]Endpoint{"one": {URL: "http://10.0.0.7:8000"}}}
		d.Routes[name] = Route{Match: Match{PathPrefix: "/" + name}, Pool: name}
		d.Tenants[name] = Tenant{Keys: []string{fmt.Sprintf("%064x", i)}}
	}
	return d
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{10, 2000} {
		data, err := Encode(large(n))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("routes=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Decode(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMerge(b *testing.B) {
	base := large(2000)
	overrides := []Override{
		override("a", BreakerForcedPath("llm"), `"open"`, time.Minute),
		override("b", RouteLimitPath("n7"), `{"requests_per_second": 5}`, time.Minute),
	}
	for b.Loop() {
		if _, err := Merge(base, overrides, now); err != nil {
			b.Fatal(err)
		}
	}
}
