-- Who may call: organizations, their projects and their keys.
-- The organization stands first in every key, so that one can be moved to another database whole.
-- Ids sort by time only in byte order, hence collate "C". Times have milliseconds, as the service
-- reads them: a finer one would put a list's cursor beside its row.

create type organization_status as enum ('active', 'suspended');

create table organization (
  id text collate "C" primary key,
  name text not null check (char_length(name) between 1 and 80),
  status organization_status not null default 'active',
  created_at timestamptz(3) not null
);
create index organization_by_age on organization (created_at, id);

create type project_status as enum ('active', 'archived');

create table project (
  organization_id text collate "C" not null references organization (id),
  id text collate "C" not null,
  name text not null check (char_length(name) between 1 and 80),
  status project_status not null default 'active',
  is_default boolean not null default false,
  created_at timestamptz(3) not null,
  archived_at timestamptz(3),
  primary key (organization_id, id),
  check ((status = 'archived') = (archived_at is not null)),
  check (not (is_default and status = 'archived'))
);
create index project_by_age on project (organization_id, created_at, id);
create unique index project_default on project (organization_id) where is_default;

create type api_key_kind as enum ('admin', 'project');

-- Only an HMAC of the secret is stored: a stolen table confirms no guess, a written row forges no key.
create table api_key (
  organization_id text collate "C" not null references organization (id),
  id text collate "C" not null,
  kind api_key_kind not null,
  project_id text collate "C",
  name text not null check (char_length(name) between 1 and 80),
  key_hash bytea not null check (octet_length(key_hash) = 32),
  hash_version integer not null,
  hint8 text not null check (char_length(hint8) = 8),
  last4 text not null check (char_length(last4) = 4),
  permissions text[] not null,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  last_used_at timestamptz(3),
  primary key (organization_id, id),
  foreign key (organization_id, project_id) references project (organization_id, id),
  check ((kind = 'project') = (project_id is not null))
);
create unique index api_key_by_hash on api_key (key_hash);
create index admin_key_by_age on api_key (organization_id, created_at, id)
  where kind = 'admin' and revoked_at is null;
create index project_key_by_age on api_key (organization_id, project_id, created_at, id)
  where kind = 'project' and revoked_at is null;
