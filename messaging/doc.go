// Package messaging is what Pawl's processes say to each other over PGMQ
// queues: a Go struct and a JSON Schema for each body, strict decoding, and the
// limits that hold at every door.
//
// A producer of any language starts a task with a [TaskRequest] on the queue
// [TaskRequests]; a worker reads a [StepMessage] from a step queue and sends a
// [StepResult] to [StepResults]; who named a queue in reply_to gets a [Reply].
// [StepEnqueue] and [TaskFinalization] are between parts of the engine.
//
// Nothing is accepted and ignored: decoding refuses unknown fields, wrong types
// and contradictions with a [BodyError] that says what to write instead. A body
// of a newer version is a [NewerVersionError]: not wrong, but for somebody else.
//
// Errors of this package name fields and never hold values of a body.
package messaging
