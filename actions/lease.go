package actions

import (
	"strconv"
	"strings"
	"time"

	"holdfast/gpuguard/policy"
)

// layerID names layer i of a run: the run's id, with "-<i>" when there are several.
func layerID(runID string, i, layers int) string {
	if layers == 1 {
		return runID
	}
	return runID + "-" + strconv.Itoa(i)
}

// LayerIDs are the ids of the overrides a run holds or held.
func (r Run) LayerIDs() []string {
	ids := make([]string, len(r.Plan.Layers))
	for i := range ids {
		ids[i] = layerID(r.ID, i, len(ids))
	}
	return ids
}

// runOfLayer is the run an override belongs to; ids of runs hold no hyphen.
func runOfLayer(id string) string {
	runID, _, _ := strings.Cut(id, "-")
	return runID
}

// layersOf makes the overrides a run puts into force.
func layersOf(r Run) []policy.Override {
	overrides := make([]policy.Override, len(r.Plan.Layers))
	for i, l := range r.Plan.Layers {
		overrides[i] = policy.Override{
			ID: layerID(r.ID, i, len(r.Plan.Layers)), Path: l.Path, Value: l.Value,
			Owner: r.Requester.Name, Reason: r.Reason, Expires: r.ExpiresAt,
		}
	}
	return overrides
}

// leasedBy lists the live leases that stand in the way of the layers.
func leasedBy(layers []Layer, overrides []policy.Override, now time.Time) []LeaseRef {
	var refs []LeaseRef
	for _, o := range policy.Live(overrides, now) {
		for _, l := range layers {
			if policy.PathsConflict(o.Path, l.Path) {
				refs = append(refs, LeaseRef{RunID: runOfLayer(o.ID), Path: o.Path, Owner: o.Owner, Reason: o.Reason, Expires: o.Expires})
				break
			}
		}
	}
	return refs
}
