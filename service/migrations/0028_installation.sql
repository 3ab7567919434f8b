-- Works with releases since 0010

-- Which database this is, in one row. A STATE_DIRECTORY remembers the id, so that it is not used with another database.
create table installation (
  is_only boolean primary key default true check (is_only),
  id uuid not null default gen_random_uuid(),
  -- A constant, sealed with the master key: a process that cannot open it has the key of another database. Null until a process has
  -- proved that its key is the right one.
  key_check bytea
);
insert into installation default values;
