-- Works with releases since 0010

-- How often a sign-in was refused in a minute. 'operator' stands for those that name no organization.
create table sign_in_refusal (
  organization_id text collate "C" not null,
  minute timestamptz(3) not null,
  refused bigint not null check (refused > 0),
  primary key (organization_id, minute)
);
create index sign_in_refusal_by_age on sign_in_refusal (minute);
