package orchestrator

import "github.com/prometheus/client_golang/prometheus"

// registration is what an orchestrator has in a registry, which may be its caller's.
type registration struct {
	prometheus.Registerer
	made []prometheus.Collector
}

// Register implements prometheus.Registerer.
func (r *registration) Register(c prometheus.Collector) error {
	err := r.Registerer.Register(c)
	if err == nil {
		r.made = append(r.made, c)
	}
	return err
}

// end takes all of it out.
func (r *registration) end() {
	for _, c := range r.made {
		r.Unregister(c)
	}
}
