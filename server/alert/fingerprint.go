package alert

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
)

// labelFingerprint is the one Prometheus and Alertmanager compute: FNV-1a over
// the sorted labels, each name and value followed by the byte 255.
func labelFingerprint(labels map[string]string) string {
	h := fnv.New64a()
	separator := []byte{255}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		for _, part := range [...]string{name, labels[name]} {
			_, _ = h.Write([]byte(part)) // a hash never fails
			_, _ = h.Write(separator)
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
