-- Works with releases since 0010

-- Refusals that leave no event, by the hour: what the limiter refuses, credentials that are not accepted, and what is shed. Each
-- process adds them up in its memory and writes them once a minute.

create table refusal_hour (
  organization_id text collate "C" not null, -- operator: of no organization, or of none that is known
  hour timestamptz(0) not null, -- of the time when they were written, in UTC
  project_id text collate "C" not null, -- empty: none
  key_id text collate "C" not null, -- empty: none that is known; *: all that had no room in their minute
  scope text collate "C" not null,
  metric text collate "C" not null,
  count bigint not null check (count > 0),
  last_at timestamptz(3) not null,
  primary key (organization_id, hour, project_id, key_id, scope, metric)
) with (fillfactor = 70);
create index refusal_hour_by_age on refusal_hour (hour);

-- What a process has written already: a batch that is written again, because the answer of the database was lost, counts once.
create table refusal_batch (
  id uuid primary key,
  at timestamptz(3) not null default now()
);
create index refusal_batch_by_age on refusal_batch (at);
