// Package actors moves the engine's messages: four actors on Proto.Actor, each with its queue, over one consumer loop.
//
//	TaskRequests       orchestration_task_requests        requests → tasks
//	StepEnqueuer       orchestration_step_enqueues        look again at a task or a gate; its clock fires what is due
//	ResultProcessor    orchestration_step_results         results → next steps
//	TaskFinalizer      orchestration_task_finalizations   is a task at its end?
//
// To follow one result from its queue to its commit, read five files:
//
//	actors/consumer.go                      when to look, one batch a turn
//	actors/result_processor.go              what the batch is
//	internal/store/step.go                  the call
//	sql/functions/apply_step_results.sql    takes the messages, locks the tasks
//	sql/functions/settle_step_results.sql        the rule: what a result does to a step and its task
//
// actors/delivery.go is what happens when that goes wrong: a batch that fails is worked message by message, and only what
// fails alone, through a fault of its own, and again, becomes a dead letter.
//
// Of Proto.Actor the mailboxes, the supervision and the restarts are used, nothing else; what instances share is the
// database. An actor holds only the batch in flight: when it panics, its supervisor starts another after a back-off, and
// the messages come back when their visibility timeout has passed.
package actors
