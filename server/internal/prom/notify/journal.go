package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// journalVersion is the format of the journal.
const journalVersion = 1

// journal is the file: every alert whose end was not delivered yet.
type journal struct {
	Version int             `json:"version"`
	Alerts  []journaledItem `json:"alerts"`
}

type journaledItem struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	StartsAt     time.Time         `json:"starts_at"`
	EndsAt       time.Time         `json:"ends_at,omitzero"`
	GeneratorURL string            `json:"generator_url,omitempty"`
}

// recall reads the journal into the state. What cannot be read is put aside.
func (s *Sender) recall() error {
	raw, err := os.ReadFile(s.o.Journal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the journal of alerts: %w", err)
	}
	var j journal
	if err = json.Unmarshal(raw, &j); err == nil && j.Version != journalVersion {
		err = fmt.Errorf("its version is %d, want %d", j.Version, journalVersion)
	}
	if err != nil {
		aside := s.o.Journal + ".unreadable"
		s.log.Error("the journal of alerts is unreadable and put aside: alerts that ended meanwhile stay open",
			"file", aside, "error", err.Error())
		return os.Rename(s.o.Journal, aside)
	}
	for _, item := range j.Alerts {
		s.recallItem(item)
	}
	return nil
}

func (s *Sender) recallItem(item journaledItem) {
	if len(item.Labels) == 0 || item.StartsAt.IsZero() {
		return
	}
	a := s.remember(fingerprint(item.Labels), Alert{
		Labels: item.Labels, Annotations: item.Annotations, StartsAt: item.StartsAt, GeneratorURL: item.GeneratorURL,
	})
	a.endsAt = item.EndsAt
	if a.endsAt.IsZero() {
		a.unknown = true
	} else {
		a.group.news = true
	}
}

// writeJournal brings the file up to date. A failure is logged and tried again:
// delivering goes on, an alert matters more than its journal.
func (s *Sender) writeJournal() {
	s.mu.Lock()
	if !s.unwritten {
		s.mu.Unlock()
		return
	}
	j := journal{Version: journalVersion, Alerts: []journaledItem{}}
	for _, a := range s.alerts {
		j.Alerts = append(j.Alerts, journaledItem{
			Labels: a.Labels, Annotations: a.Annotations, StartsAt: a.StartsAt, EndsAt: a.endsAt, GeneratorURL: a.GeneratorURL,
		})
	}
	s.unwritten = false
	s.mu.Unlock()
	raw, err := json.Marshal(j)
	if err == nil {
		err = replaceFile(s.o.Journal, raw)
	}
	if err != nil {
		s.log.Error("the journal of alerts could not be written", "file", s.o.Journal, "error", err.Error())
		s.mu.Lock()
		s.unwritten = true
		s.mu.Unlock()
	}
}

// replaceFile writes a file so that after a crash it holds the old or the new content.
func replaceFile(path string, content []byte) error {
	temporary := path + ".tmp"
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
