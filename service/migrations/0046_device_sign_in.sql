-- Works with releases since 0010

-- Programs on other devices that ask for a session (RFC 8628), until a person has confirmed it in a browser and the program has
-- fetched it. Of both codes only HMACs are stored. There is no reference to the session that has confirmed it: its member may be
-- removed meanwhile, and then the program gets nothing.
create table device_sign_in (
  device_hash bytea primary key check (octet_length(device_hash) = 32),
  user_hash bytea not null check (octet_length(user_hash) = 32),
  client_id text not null check (char_length(client_id) between 1 and 64), -- the name that the program has chosen
  device_name text check (char_length(device_name) between 1 and 80),
  address text not null check (char_length(address) between 1 and 64), -- where it asked from
  interval_seconds integer not null check (interval_seconds between 1 and 60),
  polled_at timestamptz(3),
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  refused_at timestamptz(3),
  organization_id text collate "C",
  session_id text collate "C", -- the session of the person who has confirmed it
  check ((organization_id is null) = (session_id is null)),
  check (session_id is null or refused_at is null)
);
create unique index device_sign_in_by_user_code on device_sign_in (user_hash);
create index device_sign_in_by_expiry on device_sign_in (expires_at);
create index device_sign_in_by_address on device_sign_in (address, expires_at);
