# Handlers for worker.sh: greet.
handle_greet() {
  local name
  name=$(field name)
  [ "$name" ] || permanent no_name "whom to greet is not said"
  string "Hello, $name!"
}
