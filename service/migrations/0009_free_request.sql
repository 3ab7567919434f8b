-- The one request that somebody without an account has. No address is kept, only keyed hashes of networks.

-- Who has had theirs: the hash of an IPv4 address or of the /64 of an IPv6 one, under every master key in use.
create table free_request (
  identity bytea primary key check (octet_length(identity) = 32),
  request_id text collate "C" not null,
  requested_at timestamptz(3) not null
);
create index free_request_by_age on free_request (requested_at);

-- How many were given out on a day (UTC), also if they were given back: to everybody, which is the empty network,
-- to each caller, and to larger networks of IPv6, where one household has many /64.
create table free_budget (
  day date not null,
  network bytea not null check (octet_length(network) in (0, 32)),
  used integer not null check (used >= 0),
  primary key (day, network)
) with (fillfactor = 50);
