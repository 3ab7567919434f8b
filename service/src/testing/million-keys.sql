-- 1,000 organizations with one project and 1,000 keys each, half of them administrator keys.
-- Foreign keys are not checked row by row while loading: the rows are consistent by construction.
set session_replication_role = replica;

insert into organization (id, name, created_at)
select 'org_' || lpad(i::text, 24, '0'), 'Organization ' || i, timestamptz '2026-01-01' + i * interval '1 second'
from generate_series(1, 1000) as i;

insert into project (organization_id, id, name, is_default, created_at)
select id, replace(id, 'org_', 'proj_'), 'Default', true, created_at from organization
where id like 'org_0000000000%';

insert into api_key (organization_id, id, kind, project_id, name, key_hash, hash_version, hint8, last4,
  permissions, created_at)
select 'org_' || lpad(organization::text, 24, '0'), 'key_' || lpad(i::text, 24, '0'),
  (case when is_admin then 'admin' else 'project' end)::api_key_kind,
  case when is_admin then null else 'proj_' || lpad(organization::text, 24, '0') end,
  'Key ' || i, sha256(i::text::bytea), 1, 'hint5678', 'last',
  '{projects.read}', timestamptz '2026-01-01' + i * interval '1 second'
from (
  select i, 1 + i % 1000 as organization, (i / 1000) % 2 = 0 as is_admin
  from generate_series(1, 1000000) as i
) as numbered;

set session_replication_role = origin;
analyze;
