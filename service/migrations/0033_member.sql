-- Works with releases since 0010

-- The people of an organization. A person who works for several organizations is a member of each.
create table member (
  organization_id text collate "C" not null references organization (id),
  id text collate "C" not null,
  email text not null check (email = lower(email) and char_length(email) between 3 and 254),
  name text not null check (char_length(name) between 1 and 80),
  role text not null check (role in (
    'owner', 'admin', 'policy_publisher', 'policy_editor', 'auditor', 'billing', 'developer', 'viewer'
  )),
  role_source text not null default 'assigned', -- or the group that gave the role
  status text not null check (status in ('invited', 'active', 'suspended')),
  last_seen_at timestamptz(3),
  created_at timestamptz(3) not null,
  primary key (organization_id, id),
  unique (organization_id, email)
);
create index member_by_age on member (organization_id, created_at, id);

-- What members may do in single projects.
create table project_member (
  organization_id text collate "C" not null,
  project_id text collate "C" not null,
  member_id text collate "C" not null,
  role text not null check (role in ('project_admin', 'project_member')),
  created_at timestamptz(3) not null,
  primary key (organization_id, project_id, member_id),
  foreign key (organization_id, project_id) references project (organization_id, id),
  foreign key (organization_id, member_id) references member (organization_id, id) on delete cascade
);
create index project_member_by_member on project_member (organization_id, member_id);

-- Keys that members make for themselves end with them. A key outlives its member's row, as a revoked one.
alter table api_key add column member_id text collate "C";
create index api_key_by_member on api_key (organization_id, member_id) where member_id is not null;
-- {expires_in_seconds, monthly_budget} for the keys that members make; null: nothing is prescribed.
alter table project add column key_defaults jsonb check (jsonb_typeof(key_defaults) = 'object');

-- What an organization has decided about itself.
alter table organization
  add column settings_revision integer not null default 1 check (settings_revision >= 1),
  add column publish_requires_approval boolean not null default false,
  add column default_key_expiry_seconds integer check (default_key_expiry_seconds > 0),
  add column labels jsonb not null default '{}' check (jsonb_typeof(labels) = 'object');
