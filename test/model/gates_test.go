package model

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/test/kit"
)

// limit sets how many attempts may be under way, or takes the limit back.
func (b *both) limit() {
	if !b.gated {
		panic(impossibleNow{})
	}
	b.model.Limit = rapid.SampledFrom([]int{2, 1, 3, 0}).Draw(b.rt, "limit")
	var most any
	if b.model.Limit > 0 {
		most = b.model.Limit
	}
	b.Exec("select pawl.configure_queue('work_queue', $1, 'ann', 'weak machine')", kit.Object{"max_concurrency": most})
	b.Exec("update pawl.operations set at = pawl.now() where at < $1 and command = 'configure_queue'", epoch) // the doctor asks
}

// pauseOrResume stops the queue, or lets it go on.
func (b *both) pauseOrResume() {
	if !b.gated {
		panic(impossibleNow{})
	}
	b.model.Paused = !b.model.Paused
	b.Exec(map[bool]string{true: "select pawl.pause_queue('work_queue', 'ann', 'night')",
		false: "select pawl.resume_queue('work_queue', 'ann', 'day')"}[b.model.Paused])
}

// open lets the gate release what it may.
func (b *both) open() {
	for b.Release()["released"].(float64) > 0 {
		b.Rest()
	}
}

// begun tells whether a step's attempt is under way.
func (b *both) begun(task, step int) bool {
	return kit.Get[bool](b.Kit, "select state in ('enqueued', 'in_progress') from pawl.steps where task_id = $1 and step = $2",
		b.tasks[task], fmt.Sprint("s", step))
}
