-- Works with releases since 0010

-- Who has signed in: a member, or a person who has shown an administrator key. Only an HMAC of the secret is stored, as of
-- keys. A row stays for a while after the end of its session, so that the secret is known to be one that has ended.
create table session (
  organization_id text collate "C" not null references organization (id),
  id text collate "C" not null,
  member_id text collate "C",
  key_id text collate "C",
  form text not null check (form in ('browser', 'token')),
  method text not null check (char_length(method) between 1 and 64), -- how its person has signed in
  secret_hash bytea not null check (octet_length(secret_hash) = 32),
  created_at timestamptz(3) not null,
  last_seen_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  ended_at timestamptz(3),
  primary key (organization_id, id),
  foreign key (organization_id, member_id) references member (organization_id, id) on delete cascade,
  foreign key (organization_id, key_id) references api_key (organization_id, id),
  check ((member_id is null) <> (key_id is null))
);
create unique index session_by_hash on session (secret_hash);
create index session_by_member on session (organization_id, member_id, created_at, id)
  where ended_at is null and member_id is not null;
create index session_by_key on session (organization_id, key_id, created_at, id)
  where ended_at is null and key_id is not null;
-- For the deletion of a member, which removes the ended ones too.
create index session_of_member on session (organization_id, member_id) where member_id is not null;
create index session_by_expiry on session (expires_at);
