package main

import (
	"log/slog"

	"holdfast/gpuguard"
	"holdfast/gpuguard/policy"
)

// reloadOnHangup reads the policy file again on each SIGHUP until stop is
// called. A file with problems changes nothing: the policy in force stays.
func reloadOnHangup(guard *gpuguard.Guard, path string, log *slog.Logger) (stop func()) {
	signals, end := hangups()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range signals {
			if err := reload(guard, path); err != nil {
				log.Error("policy file was not taken: the policy in force stays", "file", path, "error", err)
				continue
			}
			log.Info("policy file was read again", "file", path, "revision", guard.Effective().Revision)
		}
	}()
	return func() {
		end()
		<-done
	}
}

// reload puts the file in force as the next revision of the same lineage.
func reload(guard *gpuguard.Guard, path string) error {
	d, err := loadPolicy(path, nil)
	if err != nil {
		return err
	}
	base, err := policy.Encode(d)
	if err != nil {
		return err
	}
	now := guard.Effective()
	return guard.ApplyUpdate(policy.Update{Lineage: now.Lineage, Revision: now.Revision + 1, Base: base, LiveGateways: 1})
}
