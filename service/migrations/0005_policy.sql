-- Organization policies: a draft that is edited under a revision, and published versions.

create type policy_state as enum ('draft', 'monitoring', 'enforcing', 'paused');
create type policy_direction as enum ('request', 'response', 'both');
create type policy_mode as enum ('monitoring', 'enforcing');
create type policy_scope as enum ('organization', 'projects', 'unattached');

-- The epoch rises with everything that changes what is in force in an organization. The number of its
-- policies is kept here, because their number is limited and counting them would take longer with each.
alter table organization
  add column policy_epoch bigint not null default 0,
  add column policy_count integer not null default 0 check (policy_count >= 0);

-- A deleted policy keeps its row: its versions stay readable for auditors, and as a list's cursor it
-- keeps its place. The hashes are of the canonical content (policy.ts): equal means "demands the same".
create table policy (
  organization_id text collate "C" not null references organization (id),
  id text collate "C" not null,
  name text not null check (char_length(name) between 1 and 80),
  description text not null check (char_length(description) <= 240),
  state policy_state not null default 'draft',
  revision integer not null default 1 check (revision >= 1),
  current_version integer,
  published_sha256 bytea,
  rule text not null check (char_length(rule) between 1 and 20000),
  direction policy_direction not null,
  mode policy_mode not null,
  scope policy_scope not null,
  project_ids text[] not null check (cardinality(project_ids) <= 1000),
  match_threshold_basis_points integer check (match_threshold_basis_points between 1 and 9999),
  base_version integer,
  draft_sha256 bytea not null check (octet_length(draft_sha256) = 32),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  deleted_at timestamptz(3),
  primary key (organization_id, id),
  check ((state = 'draft') = (current_version is null)),
  check ((current_version is null) = (published_sha256 is null)),
  check ((scope = 'projects') = (cardinality(project_ids) > 0))
);
create index policy_by_age on policy (organization_id, created_at, id) where deleted_at is null;
create index policy_in_force on policy (organization_id, id)
  where deleted_at is null and state in ('monitoring', 'enforcing');

create table policy_version (
  organization_id text collate "C" not null,
  policy_id text collate "C" not null,
  version integer not null check (version >= 1),
  id text collate "C" not null,
  rule text not null,
  direction policy_direction not null,
  mode policy_mode not null,
  scope policy_scope not null,
  project_ids text[] not null,
  match_threshold_basis_points integer,
  sha256 bytea not null check (octet_length(sha256) = 32),
  published_at timestamptz(3) not null,
  primary key (organization_id, policy_id, version),
  unique (organization_id, policy_id, id),
  foreign key (organization_id, policy_id) references policy (organization_id, id)
);
-- The current version always exists, whatever is pruned.
alter table policy add foreign key (organization_id, id, current_version)
  references policy_version (organization_id, policy_id, version);

create trigger policy_version_is_immutable before update on policy_version
  for each row execute function refuse_change();
create trigger policy_version_is_kept before truncate on policy_version
  for each statement execute function refuse_change();
-- Pruning is the only way out: a version goes when 200 newer ones exist.
create function refuse_early_pruning() returns trigger language plpgsql as $$
begin
  if old.version > (
    select max(version) - 200 from policy_version
    where organization_id = old.organization_id and policy_id = old.policy_id
  ) then
    raise exception 'version % of policy % is one of the last 200 and must be kept', old.version, old.policy_id
      using errcode = 'integrity_constraint_violation';
  end if;
  return old;
end $$;
create trigger policy_version_is_pruned_in_order before delete on policy_version
  for each row execute function refuse_early_pruning();

-- Which version of which policy was in force from which epoch on; null: none. A request that ran under
-- an epoch can be traced to its versions, and a process that has seen `xid` to its own.
create table policy_epoch (
  organization_id text collate "C" not null references organization (id),
  epoch bigint not null,
  policy_id text collate "C" not null,
  version integer,
  xid xid8 not null default pg_current_xact_id(),
  at timestamptz(3) not null,
  primary key (organization_id, epoch),
  foreign key (organization_id, policy_id) references policy (organization_id, id)
);
create index policy_epoch_by_policy on policy_epoch (organization_id, policy_id, epoch);
create trigger policy_epoch_is_immutable before update or delete on policy_epoch
  for each row execute function refuse_change();
create trigger policy_epoch_is_kept before truncate on policy_epoch
  for each statement execute function refuse_change();

-- Every API process says what it has applied, every few seconds and after every change of policies.
-- `applied` is the snapshot of its last poll: it tells of each transaction whether it was seen.
-- `failures` names the organizations whose newest policies it could not apply, with the epoch it runs.
create table api_process (
  id uuid primary key,
  started_at timestamptz(3) not null,
  seen_at timestamptz(3) not null, -- by the database's clock: those of processes differ
  applied pg_snapshot,
  failures jsonb not null default '{}'
);
