-- Works with releases since 0010

-- Webhooks of organizations that decide about texts. Earlier releases do not ask them.
create table guardrail (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id),
  name text not null,
  url text not null,
  secret bytea not null, -- sealed
  enabled boolean not null,
  mode text not null check (mode in ('monitoring', 'enforcing')),
  on_error text not null check (on_error in ('refuse', 'allow')),
  deadline_ms integer not null check (deadline_ms between 100 and 5000),
  project_ids text[] check (cardinality(project_ids) > 0), -- null: every project
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  unique (organization_id, name)
);
create index guardrail_by_organization on guardrail (organization_id, created_at, id);
