package orchestrator

import (
	"log/slog"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/internal/config"
)

// FromSettings is the Config of the binary's settings.
func FromSettings(s config.Orchestrator, log *slog.Logger) Config {
	return Config{
		DatabaseURL: s.DatabaseURL, ListenerURL: s.ListenerURL, Listen: s.Listen, WorkerToken: s.WorkerToken, Park: s.Park,
		Connections: s.Connections, Grace: s.Grace,
		Settings: actors.Settings{
			Batch: s.Batch, BatchBytes: s.BatchBytes, VisibilityTimeout: s.VisibilityTimeout, RequestLoops: s.RequestLoops, ResultLoops: s.ResultLoops,
			MaxDeliveries: s.MaxDeliveries, IdlePoll: s.IdlePoll, ProvenPoll: s.ProvenPoll, HeartbeatEvery: s.HeartbeatEvery,
			ReconcileEvery: s.ReconcileEvery, ReconcileGrace: s.ReconcileGrace, SweepEvery: s.SweepEvery,
		},
		Logger: log,
	}
}
