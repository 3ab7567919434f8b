-- Works with releases since 0010

-- What administrators may know of the processes that answer their calls. Null: a process of an earlier release, which does not say it.
alter table api_process
  add column release text check (char_length(release) <= 40),
  add column is_ready boolean,
  add column counts_locally boolean; -- Redis is away, or there is none: it counts limits in its own memory
