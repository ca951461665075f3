# What a virtual machine does of a run of steps; the calls of `step` follow below. See vm.ts, which reads the results.

export PATH=/bin HOME=/disk WORK=/disk/work
groups=/sys/fs/cgroup
results=/dev/ttyS1
index=0
stty -F "$results" raw
echo +memory >"$groups/cgroup.subtree_control"
mkdir -p "$WORK" /disk/out
cd /disk/project

# Whether a line of what the step printed begins with a text.
printed() {
  TEXT="$1" awk 'index($0, ENVIRON["TEXT"]) == 1 { found = 1; exit } END { exit !found }' /disk/out/stdout
}

# Sends SIGTERM to a process at a line, and ends it when its time is over.
watch() {
  pid="$1" seconds="$2" line="$3"
  end=$(($(date +%s) + seconds))
  while sleep 0.3; do
    if [ "$(date +%s)" -ge "$end" ]; then
      touch /disk/out/late
      kill -KILL "$pid"
      return
    fi
    if [ -n "$line" ] && printed "$line"; then
      kill -TERM "$pid"
      line=
    fi
  done
}

# step SECONDS MAX HIGH LINE COMMAND...: runs a command in a control group, and tells how it ended.
step() {
  seconds="$1" max="$2" high="$3" line="$4"
  shift 4
  group="$groups/step-$index"
  rm -f /disk/out/*
  mkdir "$group"
  echo "$max" >"$group/memory.max"
  echo "$high" >"$group/memory.high"
  sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" \
    </dev/null >/disk/out/stdout 2>/disk/out/stderr &
  pid=$!
  watch "$pid" "$seconds" "$line" &
  watcher=$!
  wait "$pid"
  code=$?
  kill "$watcher" 2>/dev/null
  wait "$watcher" 2>/dev/null
  echo 1 >"$group/cgroup.kill"
  {
    echo "@step $index"
    echo "code $code"
    sed -n 's/^oom_kill /oomKills /p' "$group/memory.events"
    echo "peakBytes $(cat "$group/memory.peak")"
    [ ! -e /disk/out/late ] || echo "late 1"
    for name in stdout stderr; do
      echo "@$name"
      base64 "/disk/out/$name"
    done
    echo "@end $index"
  } >"$results"
  until rmdir "$group"; do sleep 0.1; done
  index=$((index + 1))
}
