-- Works with releases since 0010

-- Where an organization asks for two persons, another member has to consent before a policy is put in force. The consent is
-- for one revision, so that any later change needs another one.
create table policy_approval (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  policy_id text collate "C" not null,
  revision integer not null check (revision >= 1),
  member_id text collate "C" not null,
  created_at timestamptz(3) not null,
  primary key (organization_id, id),
  unique (organization_id, policy_id, revision, member_id),
  foreign key (organization_id, policy_id) references policy (organization_id, id),
  foreign key (organization_id, member_id) references member (organization_id, id) on delete cascade
);
create index policy_approval_by_age on policy_approval (organization_id, policy_id, created_at, id);
create index policy_approval_by_member on policy_approval (organization_id, member_id);

-- Who last changed the draft: the id of a member or of a key. A member cannot approve an own draft.
alter table policy add column drafted_by text;

-- Changes of the policy gateway that wait for another person, and the last ones that were decided. The content has no secret:
-- that of a guardrail is sealed beside it. `base` is what the change was made to; when it has changed, nothing is approved.
create table gateway_proposal (
  id text collate "C" primary key,
  organization_id text collate "C" not null references organization (id),
  status text not null check (status in ('open', 'approved', 'withdrawn')),
  content jsonb not null,
  secret bytea,
  base text not null,
  comment text check (char_length(comment) between 1 and 500),
  proposed_by text not null,
  decided_by text,
  created_at timestamptz(3) not null,
  decided_at timestamptz(3),
  check ((status = 'open') = (decided_by is null)),
  check ((decided_by is null) = (decided_at is null))
);
create index gateway_proposal_by_age on gateway_proposal (organization_id, created_at, id);
