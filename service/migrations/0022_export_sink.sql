-- Works with releases since 0010

-- Where an organization's events are sent to.
create table export_sink (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id),
  type text not null,
  label text not null,
  enabled boolean not null,
  config jsonb not null, -- without secrets
  secrets bytea, -- the secret members of the configuration as JSON, sealed
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  -- The last digest of stored objects, which the next one names.
  digest_key text,
  digest_sha256 text
);
create index export_sink_by_organization on export_sink (organization_id, created_at, id);

-- How far events have been delivered. A sink has one cursor that follows the log, and one for each replay.
create table export_cursor (
  id bigint primary key generated always as identity,
  sink_id text collate "C" not null references export_sink (id) on delete cascade,
  organization_id text collate "C" not null,
  is_replay boolean not null,
  org_seq bigint not null, -- the last event that the destination has
  end_seq bigint, -- where a replay ends
  signed_size bigint not null, -- the last checkpoint that the destination has; a replay delivers none
  day date not null, -- no entry of audit_log after org_seq is older
  -- The batch that is being sent, so that a retry sends the same one.
  planned_to bigint,
  -- While the event that a destination refuses is searched: how many events the next batch may have.
  batch_max integer,
  lease_owner uuid,
  lease_until timestamptz,
  attempt integer not null default 0, -- failures since the last success
  next_at timestamptz not null,
  state text not null default 'ok' check (state in ('ok', 'retrying', 'error')),
  last_success_at timestamptz(3),
  last_error_at timestamptz(3),
  last_error text
);
create unique index export_cursor_of_sink on export_cursor (sink_id) where not is_replay;
create index export_cursor_replays on export_cursor (sink_id, id) where is_replay;
create index export_cursor_due on export_cursor (next_at);

-- Events that a destination has refused. They are not sent again unless they are requeued.
create table export_dead_letter (
  sink_id text collate "C" not null references export_sink (id) on delete cascade,
  org_seq bigint not null,
  event_day date not null,
  event_id uuid not null,
  error text not null,
  attempts integer not null,
  created_at timestamptz(3) not null,
  primary key (sink_id, org_seq)
);

-- Objects that a destination has stored and that no digest lists yet.
create table export_object (
  sink_id text collate "C" not null references export_sink (id) on delete cascade,
  key text collate "C" not null,
  sha256 text not null,
  bytes bigint not null,
  first_seq bigint not null,
  last_seq bigint not null,
  at timestamptz(3) not null,
  primary key (sink_id, key)
);
