-- Works with releases since 0010

-- The accounts at providers that members sign in with. The provider's own name of an account decides, never its address, which
-- may become another person's.
create table member_identity (
  organization_id text collate "C" not null,
  issuer text collate "C" not null,
  subject text collate "C" not null,
  client_id text not null, -- providers may name the same account differently to another client
  member_id text collate "C" not null,
  lost_at timestamptz(3), -- since when the claims give no role, which has suspended the member
  kept_at timestamptz(3), -- since when only being the last owner keeps the member's role
  created_at timestamptz(3) not null,
  primary key (organization_id, issuer, subject),
  foreign key (organization_id, member_id) references member (organization_id, id) on delete cascade
);
create index member_identity_by_member on member_identity (organization_id, member_id);
create index member_identity_by_subject on member_identity (issuer, subject);
create index member_by_email on member (email);

-- What the provider can be told and asked about a session that it has signed in. The tokens are sealed.
create table provider_session (
  organization_id text collate "C" not null,
  session_id text collate "C" not null,
  issuer text collate "C" not null,
  subject text collate "C" not null,
  provider_session text collate "C", -- the `sid` of its tokens
  id_token bytea,
  refresh_token bytea,
  checked_at timestamptz(3) not null, -- when the claims were last compared, or their comparison begun
  primary key (organization_id, session_id),
  foreign key (organization_id, session_id) references session (organization_id, id) on delete cascade
);
create index provider_session_by_subject on provider_session (issuer, subject);
create index provider_session_by_sid on provider_session (issuer, provider_session)
  where provider_session is not null;
create index provider_session_by_check on provider_session (checked_at) where refresh_token is not null;

-- What may be used once: the states of sign-ins, and the ids of logout tokens.
create table used_token (
  hash bytea primary key check (octet_length(hash) = 32),
  expires_at timestamptz(3) not null
);
create index used_token_by_expiry on used_token (expires_at);
