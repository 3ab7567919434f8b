-- Key, effect and answer of an idempotent request commit together; a row without an answer is never
-- visible to others. `scope` is a hash of method and path, `answer` is sealed (it may hold a secret).
create table idempotency_key (
  organization_id text collate "C" not null,
  scope bytea not null check (octet_length(scope) = 32),
  key text collate "C" not null check (char_length(key) between 1 and 255),
  fingerprint bytea not null check (octet_length(fingerprint) = 32),
  status smallint,
  answer bytea,
  created_at timestamptz(3) not null,
  primary key (organization_id, scope, key)
);
create index idempotency_key_by_age on idempotency_key (created_at);
