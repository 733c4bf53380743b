// Package sqlstate names the codes of the database's errors and judges them: once for the engine, the workers, the clients
// and the programs. What a message's error means for the message is built on it in internal/store. Only messaging/pgmq names
// its three codes itself, since it knows nothing of the rest.
package sqlstate
