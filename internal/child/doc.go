// Package child sets how a process that Pawl starts hangs together with Pawl's own: in a session or a group apart, as another
// user, dying with it.
//
// Windows has nothing of this. Its functions only let the programs be built there: all that calls them needs a Postgres of
// internal/devpg first, which Windows is refused.
package child
