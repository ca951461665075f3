-- What was written beside the history and no commit holds yet.
CREATE TABLE pending (
  wf   INTEGER NOT NULL,
  idx  INTEGER NOT NULL,
  key  TEXT NOT NULL,
  body BLOB NOT NULL
);
CREATE UNIQUE INDEX pending_key ON pending (wf, key, idx);
