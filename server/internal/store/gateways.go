package store

import (
	"time"

	"holdfast/gpuguard/policy"
	"holdfast/server/fleet"
)

type gatewayRow struct {
	Name             string `gorm:"primaryKey"`
	Instance         string
	Version          string
	Lineage          string
	Revision         int64
	Result           string
	Error            string
	RejectedRevision int64
	ApplySeconds     float64
	AckedAt          stamp
	LastHeardAt      stamp
	State            policy.State `gorm:"serializer:json"`
	Prior            policy.State `gorm:"serializer:json"`
	PriorAt          stamp
	StateAt          stamp
}

// TableName is the table.
func (gatewayRow) TableName() string { return "gateways" }

func (r gatewayRow) gateway() fleet.Gateway {
	return fleet.Gateway{
		Name: r.Name, Instance: r.Instance, Version: r.Version, Lineage: r.Lineage,
		Revision: r.Revision, Result: policy.AckResult(r.Result), Error: r.Error,
		RejectedRevision: r.RejectedRevision, ApplySeconds: r.ApplySeconds, AckedAt: r.AckedAt.t,
		LastHeardAt: r.LastHeardAt.t, State: r.State, Prior: r.Prior, PriorAt: r.PriorAt.t,
		StateAt: r.StateAt.t,
	}
}

// Gateways lists members by name.
func (tx *Tx) Gateways() ([]fleet.Gateway, error) {
	return many(tx, "list gateways", tx.db.Order("name"), gatewayRow.gateway)
}

// Gateway finds by name.
func (tx *Tx) Gateway(name string) (fleet.Gateway, error) {
	row, err := one[gatewayRow](tx, "read a gateway", tx.db.Where("name = ?", name), fleet.ErrNotFound)
	if err != nil {
		return fleet.Gateway{}, err
	}
	return row.gateway(), nil
}

// SaveGateway inserts or replaces a member, and wakes what waits for acknowledgements.
func (tx *Tx) SaveGateway(g fleet.Gateway) error {
	row := gatewayRow{
		Name: g.Name, Instance: g.Instance, Version: g.Version, Lineage: g.Lineage,
		Revision: g.Revision, Result: string(g.Result), Error: g.Error,
		RejectedRevision: g.RejectedRevision, ApplySeconds: g.ApplySeconds, AckedAt: at(g.AckedAt),
		LastHeardAt: tx.orNow(g.LastHeardAt), State: g.State, Prior: g.Prior, PriorAt: at(g.PriorAt),
		StateAt: at(g.StateAt),
	}
	tx.wake(wakeRuns)
	return tx.upsert("save a gateway", &row, "name")
}

// DeleteGatewaysUnheard forgets members not heard since the given time.
func (tx *Tx) DeleteGatewaysUnheard(since time.Time) (int, error) {
	n, err := tx.affected("forget silent gateways", "DELETE FROM gateways WHERE last_heard_at < ?", at(since))
	if n > 0 {
		tx.wake(wakeRuns)
	}
	return int(n), err
}
