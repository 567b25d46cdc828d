package notify

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// alertName is the label that names an alert's rule.
const alertName = "alertname"

// groupBy are the labels by which alerts are grouped: one outage sets off many
// rules, and a person should get one incident for it.
var groupBy = []string{"service", "environment"}

// Receiver is the receiver that webhooks name.
const Receiver = "embedded"

// maxPerWebhook bounds one body; a larger group is sent in several, those that
// fire first, so that a group is not taken for over in between.
const maxPerWebhook = 1000

// webhook is Alertmanager's, version "4".
type webhook struct {
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	Status            string            `json:"status"`
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []webhookAlert    `json:"alerts"`
}

type webhookAlert struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

const (
	firing   = "firing"
	resolved = "resolved"
)

// member is one alert as it was when it was rendered.
type member struct {
	*alert
	resolved bool
}

// grouping gives the labels of an alert's group and the key, in Alertmanager's
// form. An alert that belongs to no place is grouped by its name.
func grouping(labels map[string]string) (group map[string]string, key string) {
	group = map[string]string{}
	set := model.LabelSet{}
	take := func(name string) {
		if v := labels[name]; v != "" {
			group[name] = v
			set[model.LabelName(name)] = model.LabelValue(v)
		}
	}
	for _, name := range groupBy {
		take(name)
	}
	if len(group) == 0 {
		take(alertName)
	}
	return group, "{}:" + set.String()
}

// fingerprint is Prometheus' own: 16 hexadecimal digits of a hash of the labels.
func fingerprint(labels map[string]string) string {
	set := make(model.LabelSet, len(labels))
	for name, v := range labels {
		set[model.LabelName(name)] = model.LabelValue(v)
	}
	return set.Fingerprint().String()
}

// render makes the webhooks of a group from what is known about it.
func (s *Sender) render(g *group) ([]member, [][]byte) {
	var members []member
	for _, a := range g.members {
		if !a.unknown {
			members = append(members, member{a, !a.endsAt.IsZero()})
		}
	}
	slices.SortFunc(members, func(a, b member) int {
		if a.resolved != b.resolved {
			if b.resolved {
				return -1
			}
			return 1
		}
		return strings.Compare(a.fingerprint, b.fingerprint)
	})
	var bodies [][]byte
	for part := range slices.Chunk(members, maxPerWebhook) {
		bodies = append(bodies, s.body(g, part))
	}
	return members, bodies
}

func (s *Sender) body(g *group, members []member) []byte {
	w := webhook{
		Version: "4", GroupKey: g.key, Status: resolved, Receiver: Receiver, GroupLabels: g.labels,
		CommonLabels: maps.Clone(members[0].Labels), CommonAnnotations: maps.Clone(members[0].Annotations),
		ExternalURL: s.o.ExternalURL,
	}
	for _, m := range members {
		keepCommon(w.CommonLabels, m.Labels)
		keepCommon(w.CommonAnnotations, m.Annotations)
		status := resolved
		if !m.resolved {
			status, w.Status = firing, firing
		}
		w.Alerts = append(w.Alerts, webhookAlert{
			Status: status, Labels: m.Labels, Annotations: m.Annotations, StartsAt: m.StartsAt.UTC(), EndsAt: m.endsAt.UTC(),
			GeneratorURL: m.GeneratorURL, Fingerprint: m.fingerprint,
		})
	}
	// Strings, numbers and times of years that have four digits always encode.
	body, _ := json.Marshal(w)
	return body
}

// keepCommon drops from common what others does not have alike.
func keepCommon(common, others map[string]string) {
	maps.DeleteFunc(common, func(name, v string) bool {
		other, ok := others[name]
		return !ok || other != v
	})
}
