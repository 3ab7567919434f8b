-- 100,000 policies of the oldest organization, which is created if there is none, and 500 of another one. One in
-- ten is published, in one to three versions, and every fifth of those is paused. Groups of ten policies share
-- their time of creation.
-- Foreign keys are not checked row by row while loading: the rows are consistent by construction.
set session_replication_role = replica;

insert into organization (id, name, created_at)
select 'org_' || lpad('1', 24, '0'), 'Large Ltd', timestamptz '2026-01-01'
where not exists (select from organization);

create temporary table seeded as
select case when i <= 100000 then (select id from organization order by created_at, id limit 1)
    else 'org_' || lpad('2', 24, '0') end as organization_id,
  'pol_' || lpad(i::text, 24, '0') as id, i, 'Rule ' || i || ': be kind.' as rule,
  timestamptz '2026-01-01' + i / 10 * interval '1 second' as at,
  case when i % 20 = 0 then 'enforcing' else 'monitoring' end::policy_mode as mode,
  case when i % 10 = 0 then 1 + i / 10 % 3 end as current_version, i % 50 = 0 as is_paused
from generate_series(1, 100500) as i;

insert into organization (id, name, created_at)
values ('org_' || lpad('2', 24, '0'), 'Neighbour Ltd', now());

-- The canonical form of policy.ts; older versions of a policy differ in their threshold.
create function pg_temp.content_sha256(mode policy_mode, rule text, threshold integer) returns bytea
language sql as $$
  select sha256(convert_to('{"direction":"both","match_threshold_basis_points":'
    || coalesce(threshold::text, 'null') || ',"mode":"' || mode || '","project_ids":[],"rule":'
    || to_json(rule) || ',"scope":"unattached"}', 'UTF8'))
$$;

insert into policy (organization_id, id, name, description, state, revision, current_version,
  published_sha256, rule, direction, mode, scope, project_ids, base_version, draft_sha256,
  created_at, updated_at)
select organization_id, id, 'Policy ' || i, 'Number ' || i || ' of many.',
  case when current_version is null then 'draft' when is_paused then 'paused' else mode::text end::policy_state,
  1 + coalesce(current_version, 0), current_version,
  case when current_version is not null then pg_temp.content_sha256(mode, rule, null) end,
  rule, 'both', mode, 'unattached', '{}', current_version, pg_temp.content_sha256(mode, rule, null), at, at
from seeded;

insert into policy_version (organization_id, policy_id, version, id, rule, direction, mode, scope,
  project_ids, match_threshold_basis_points, sha256, published_at)
select organization_id, seeded.id, version, 'polver_' || lpad((i * 10 + version)::text, 24, '0'), rule,
  'both', mode, 'unattached', '{}', threshold, pg_temp.content_sha256(mode, rule, threshold), at
from seeded, generate_series(1, current_version) as version,
  lateral (select case when version < current_version then version end as threshold) as older;

insert into policy_epoch (organization_id, epoch, policy_id, version, at)
select organization_id, row_number() over (partition by organization_id order by i, step), id,
  case when step <= current_version then step end, at
from seeded, generate_series(1, current_version + is_paused::integer) as step;
update organization set policy_epoch = (
  select coalesce(max(epoch), 0) from policy_epoch where organization_id = organization.id
), policy_count = (select count(*) from policy where organization_id = organization.id);

drop table seeded;
set session_replication_role = origin;
analyze;
