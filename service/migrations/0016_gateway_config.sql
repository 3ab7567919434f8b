-- Works with releases since 0010

-- The configuration of the policy gateway: one per organization, with what it was before.

create table gateway_config (
  organization_id text collate "C" primary key references organization (id),
  revision integer not null check (revision >= 1),
  -- The revision at which anything but the rollout last changed. Subjects are drawn by it, so that a higher percentage
  -- only adds some, and new rules draw anew.
  sampling_revision integer not null check (sampling_revision between 1 and revision),
  -- Whoever may choose a subject must not be able to choose its bucket. It is not derived from a master key: subjects stay
  -- where they are when those change.
  sampling_key bytea not null check (octet_length(sampling_key) = 32),
  config jsonb not null check (jsonb_typeof(config) = 'object'),
  sha256 bytea not null check (octet_length(sha256) = 32),
  rolled_back_until timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);

create type gateway_history_kind as enum ('revision', 'simulation');

create table gateway_history (
  organization_id text collate "C" not null references organization (id),
  id text collate "C" not null,
  -- Entries are made one after another in an organization, but by the clocks of several machines.
  seq bigint not null generated always as identity,
  kind gateway_history_kind not null,
  revision integer, -- of a saved configuration
  actor text not null,
  content jsonb not null check (jsonb_typeof(content) = 'object'),
  created_at timestamptz(3) not null,
  primary key (organization_id, id),
  check ((kind = 'revision') = (revision is not null))
);
create index gateway_history_by_kind on gateway_history (organization_id, kind, seq);
create trigger gateway_history_is_immutable before update on gateway_history
  for each row execute function refuse_change();

-- A saved configuration begins an epoch too. Such a step names the configuration's revision instead of a policy.
alter table policy_epoch
  alter column policy_id drop not null,
  add column gateway_revision integer,
  add check ((policy_id is null) = (gateway_revision is not null));
