-- What happened. An administration event commits in the transaction of its change.
-- The payload (what it was before and after) is hashed with a salt of its own: it can be erased later
-- without breaking what is built over the hashes. Readers go by (xid, seq), as with config_change.
create table event (
  day date not null, -- of the id, in UTC: whoever writes an event twice meets its first copy
  id uuid not null, -- version 7, made by the writer
  seq bigint not null generated always as identity,
  xid xid8 not null default pg_current_xact_id(),
  shard smallint not null,
  organization_id text collate "C" not null,
  kind text not null,
  at timestamptz(3) not null,
  header jsonb not null,
  payload bytea,
  salt bytea,
  payload_hash bytea not null check (octet_length(payload_hash) = 32),
  primary key (day, id)
) partition by range (day);
create table event_default partition of event default;
create index event_by_commit on event (shard, xid, seq);

-- Events are evidence: nothing changes them in place, only a payload may be erased.
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% of % is not allowed: its rows are immutable', tg_op, tg_table_name
    using errcode = 'integrity_constraint_violation';
end $$;
create trigger event_is_immutable before update on event
  for each row when (
    new.payload is not null or new.salt is not null
    or (old.day, old.id, old.seq, old.xid, old.shard, old.organization_id, old.kind, old.at, old.header, old.payload_hash)
      is distinct from
      (new.day, new.id, new.seq, new.xid, new.shard, new.organization_id, new.kind, new.at, new.header, new.payload_hash)
  ) execute function refuse_change();
create trigger event_is_kept before delete on event
  for each row execute function refuse_change();
create trigger event_is_not_emptied before truncate on event
  for each statement execute function refuse_change();
-- Statement triggers are not inherited: every partition needs its own.
create trigger event_default_is_not_emptied before truncate on event_default
  for each statement execute function refuse_change();
