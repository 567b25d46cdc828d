package gpuguard

import (
	"errors"

	"holdfast/gpuguard/controlclient"
	"holdfast/gpuguard/policy"
)

// source shows the guard to the admin pages.
type source struct{ g *Guard }

// Ready implements admin.Source.
func (s source) Ready() error {
	if s.g.draining.Load() {
		return errors.New("draining")
	}
	if _, ok := s.g.gateway.Effective(); !ok {
		return errors.New("no policy is loaded")
	}
	return nil
}

// Effective implements admin.Source.
func (s source) Effective() (policy.Effective, bool) { return s.g.gateway.Effective() }

// State implements admin.Source.
func (s source) State() policy.State { return s.g.State() }

// Control implements admin.Source.
func (s source) Control() (controlclient.Status, bool) {
	c := s.g.control.Load()
	if c == nil {
		return controlclient.Status{}, false
	}
	return c.Status(), true
}
