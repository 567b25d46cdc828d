package httpapi

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	denied   *prometheus.CounterVec
	streams  *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_http_requests_total", Help: "Requests by route, method and status.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "holdfast_http_request_seconds", Help: "Time to answer by route; streams count until they end.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
		denied: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_http_denied_total", Help: "Requests refused by the access table, by operation.",
		}, []string{"operation"}),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "holdfast_http_streams", Help: "Open event streams by kind.",
		}, []string{"kind"}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.seconds, m.denied, m.streams)
	}
	return m
}
