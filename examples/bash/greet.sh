# Handlers for worker.sh: greet.
handle_greet() { string "Hello, $(field name)!"; }
