-- What every API process must learn within seconds: revoked keys, archived projects, suspended
-- organizations, and later published policies. Written in the transaction of the change.
-- Sequence order is not commit order: readers go by (xid, seq) and the snapshot's horizon.
create table config_change (
  xid xid8 not null default pg_current_xact_id(),
  seq bigint not null generated always as identity,
  organization_id text collate "C" not null,
  kind text not null,
  object_id text collate "C" not null,
  at timestamptz(3) not null,
  primary key (xid, seq)
);
create index config_change_by_age on config_change (at);
