// Package kit works the engine by calling its SQL functions: no actor, no worker process, and no time that passes by
// itself. It is what the proofs share: the doctor's mutations, crash points, interleavings and the model. Besides, it has what tests of all
// kinds share: seeds, and sections of documents that a test writes.
package kit
