package pgmq

import (
	"maps"
	"slices"
	"sync"
)

// QueueChannel is the channel on which PGMQ notifies of inserts into a queue.
func QueueChannel(queue string) string { return "pgmq.q_" + queue + ".INSERT" }

// maxChannel is the longest channel name of Postgres in bytes: NAMEDATALEN - 1.
const maxChannel = 63

// subscriptions is who wants to be woken by which channel. Its methods are safe
// for concurrent use and never block: a subscriber has room for one wake-up, and
// one is as good as ten.
type subscriptions struct {
	mu sync.Mutex
	// byChannel is guarded by mu. A channel without subscribers has no entry. The
	// value says whether the subscriber was greeted on the present connection.
	byChannel map[string]map[chan struct{}]bool
}

func (s *subscriptions) add(channel string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byChannel == nil {
		s.byChannel = make(map[string]map[chan struct{}]bool)
	}
	if s.byChannel[channel] == nil {
		s.byChannel[channel] = make(map[chan struct{}]bool)
	}
	wake := make(chan struct{}, 1)
	s.byChannel[channel][wake] = false
	return wake
}

func (s *subscriptions) remove(channel string, wake chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byChannel[channel], wake)
	if len(s.byChannel[channel]) == 0 {
		delete(s.byChannel, channel)
	}
}

func (s *subscriptions) channels() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.byChannel))
}

// wake wakes the subscribers of a channel.
func (s *subscriptions) wake(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wake := range s.byChannel[channel] {
		rouse(wake)
	}
}

// greet wakes the subscribers of a channel who were not greeted yet: what they
// wait for may have come before the channel was listened to.
func (s *subscriptions) greet(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wake, greeted := range s.byChannel[channel] {
		if !greeted {
			s.byChannel[channel][wake] = true
			rouse(wake)
		}
	}
}

// forget makes everybody one who was not greeted.
func (s *subscriptions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, subscribers := range s.byChannel {
		for wake := range subscribers {
			subscribers[wake] = false
		}
	}
}

func rouse(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default: // it has a wake-up that it has not taken yet
	}
}
