-- Works with releases since 0010

-- Limits of one organization, project or key that hold instead of its tier's. They are read with every credential, and
-- a change is announced as a revocation is. `values` has only the numbers that were set.

create type limit_scope as enum ('organization', 'project', 'key');

create table limit_override (
  organization_id text collate "C" not null references organization (id),
  scope limit_scope not null,
  scope_id text collate "C" not null,
  values jsonb not null check (jsonb_typeof(values) = 'object'),
  primary key (organization_id, scope, scope_id),
  check (scope <> 'organization' or scope_id = organization_id)
);
