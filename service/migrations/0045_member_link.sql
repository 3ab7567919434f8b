-- Works with releases since 0010

-- Links with a secret that are meant for one member: `sign_in` signs the member in, `invitation` leads an invited person to the
-- providers. Only an HMAC of the secret is stored, as of keys. A used link is gone, and a new one replaces it.
create table member_link (
  organization_id text collate "C" not null,
  member_id text collate "C" not null,
  kind text not null check (kind in ('sign_in', 'invitation')),
  secret_hash bytea not null check (octet_length(secret_hash) = 32),
  expires_at timestamptz(3) not null,
  primary key (organization_id, member_id, kind),
  foreign key (organization_id, member_id) references member (organization_id, id) on delete cascade
);
create unique index member_link_by_hash on member_link (secret_hash);
create index member_link_by_expiry on member_link (expires_at);
